// A test binary's frame: cases register themselves, main (check_main.cpp) lists or runs them.
//
//   TEST(name) { CHECK(condition); CHECK_EQ(actual, expected); }
//   TEST_WITH_ENV(name, "A=1 B=2") { ... }   // in a process of its own with these variables
//   TEST_DIES(name, "A=1", "text") { ... }   // likewise; a signal must end it, and say `text`
//
// A failed check ends its case with an exception; the others go on.
#pragma once

#include <sstream>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <vector>

namespace check {

struct Case {
  std::string name;
  void (*body)();
  std::string environment;  // "VARIABLE=value VARIABLE=value", or empty: no process of its own
  std::string last_words;   // not empty: the process must die of a signal with this on stderr
};

std::vector<Case>& cases();

struct Registrar {
  Registrar(const char* name, void (*body)(), const char* environment = "",
            const char* last_words = "") {
    cases().push_back({name, body, environment, last_words});
  }
};

struct Failed : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// Ends a case that this machine cannot run, with the reason.
struct Skipped : std::runtime_error {
  using std::runtime_error::runtime_error;
};

template <typename T>
auto printable(const T& value) {
  if constexpr (std::is_enum_v<T>) {
    return static_cast<long long>(value);
  } else {
    return value;
  }
}

[[noreturn]] inline void fail(const char* file, int line, const std::string& what) {
  std::ostringstream out;
  out << file << ':' << line << ": " << what;
  throw Failed(out.str());
}

template <typename A, typename B>
void equal(const A& actual, const B& expected, const char* text, const char* file, int line) {
  if (actual == expected) return;
  std::ostringstream out;
  out << text << ": got " << printable(actual) << ", expected " << printable(expected);
  fail(file, line, out.str());
}

}  // namespace check

#define CHECK_DEFINE(name, ...)                                             \
  static void name();                                                       \
  static const check::Registrar registrar_##name{#name, name, __VA_ARGS__}; \
  static void name()

#define TEST(name) CHECK_DEFINE(name, "")
#define TEST_WITH_ENV(name, environment) CHECK_DEFINE(name, environment)
#define TEST_DIES(name, environment, text) CHECK_DEFINE(name, environment, text)

// c10's logging has macros of these names; they abort the process. Include ATen first.
#undef CHECK
#undef CHECK_EQ
#define CHECK(condition)                                           \
  do {                                                             \
    if (!(condition)) check::fail(__FILE__, __LINE__, #condition); \
  } while (false)
#define CHECK_EQ(actual, expected) check::equal((actual), (expected), #actual, __FILE__, __LINE__)
