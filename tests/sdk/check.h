// A test binary's frame: cases register themselves, main (check_main.cpp) lists or runs them.
//
//   TEST(name) { CHECK(condition); CHECK_EQ(actual, expected); }
//   TEST_WITH_ENV(name, "VARIABLE=value") { ... }   // in a process of its own with that variable
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
  std::string environment;  // "VARIABLE=value" or empty
};

std::vector<Case>& cases();

struct Registrar {
  Registrar(const char* name, void (*body)(), const char* environment = "") {
    cases().push_back({name, body, environment});
  }
};

struct Failed : std::runtime_error {
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

#define CHECK_DEFINE(name, environment)                                     \
  static void name();                                                       \
  static const check::Registrar registrar_##name{#name, name, environment}; \
  static void name()

#define TEST(name) CHECK_DEFINE(name, "")
#define TEST_WITH_ENV(name, environment) CHECK_DEFINE(name, environment)

// c10's logging has macros of these names; they abort the process. Include ATen first.
#undef CHECK
#undef CHECK_EQ
#define CHECK(condition)                                           \
  do {                                                             \
    if (!(condition)) check::fail(__FILE__, __LINE__, #condition); \
  } while (false)
#define CHECK_EQ(actual, expected) check::equal((actual), (expected), #actual, __FILE__, __LINE__)
