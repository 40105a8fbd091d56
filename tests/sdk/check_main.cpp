// main of every test binary: `--list` prints the case names, names run those cases, nothing runs
// all.
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <string>

#include "check.h"

namespace check {

std::vector<Case>& cases() {
  static std::vector<Case> all;
  return all;
}

namespace {

constexpr const char* kChildMarker = "MUSA_CHECK_CHILD";

// Variables are read once per process, so a case that sets one gets a process of its own.
std::string run_in_child(const Case& test) {
  const pid_t child = fork();
  if (child == 0) {
    const size_t equals = test.environment.find('=');
    setenv(test.environment.substr(0, equals).c_str(), test.environment.substr(equals + 1).c_str(),
           1);
    setenv(kChildMarker, "1", 1);
    execl("/proc/self/exe", "self", test.name.c_str(), static_cast<char*>(nullptr));
    _exit(127);
  }
  int status = 0;
  if (child < 0 || waitpid(child, &status, 0) != child) return "cannot start a process";
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return "";
  return "in its own process (with " + test.environment + ")";
}

std::string run_here(const Case& test) {
  try {
    test.body();
    return "";
  } catch (const std::exception& error) {
    return error.what();
  }
}

bool run(const Case& test) {
  const bool separate = !test.environment.empty() && getenv(kChildMarker) == nullptr;
  const std::string failure = separate ? run_in_child(test) : run_here(test);
  // The child's verdict is the parent's to print.
  if (getenv(kChildMarker) != nullptr) {
    if (!failure.empty()) std::fprintf(stderr, "%s\n", failure.c_str());
  } else if (failure.empty()) {
    std::printf("PASS %s\n", test.name.c_str());
  } else {
    std::printf("FAIL %s %s\n", test.name.c_str(), failure.c_str());
  }
  std::fflush(stdout);
  return failure.empty();
}

}  // namespace
}  // namespace check

int main(int argc, char** argv) {
  using check::cases;
  if (argc == 2 && std::strcmp(argv[1], "--list") == 0) {
    for (const check::Case& test : cases()) std::printf("%s\n", test.name.c_str());
    return 0;
  }
  int failures = 0;
  int ran = 0;
  for (const check::Case& test : cases()) {
    bool wanted = argc == 1;
    for (int i = 1; i < argc; ++i) wanted = wanted || test.name == argv[i];
    if (!wanted) continue;
    ++ran;
    failures += check::run(test) ? 0 : 1;
  }
  if (ran == 0) {
    std::fprintf(stderr, "no such case\n");
    return 2;
  }
  return failures == 0 ? 0 : 1;
}
