// main of every test binary: `--list` prints the case names, names run those cases, nothing runs
// all.
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <sstream>
#include <string>

#include "check.h"

#if defined(__SANITIZE_ADDRESS__)
// A fault that AddressSanitizer reports ends the process with this status, not with a signal; 1
// would look like a failed case.
extern "C" const char* __asan_default_options() { return "exitcode=99"; }
#endif

namespace check {

std::vector<Case>& cases() {
  static std::vector<Case> all;
  return all;
}

namespace {

constexpr const char* kChildMarker = "MUSA_CHECK_CHILD";
constexpr int kSkipped = 77;  // exit status

struct Verdict {
  enum { PASS, FAIL, SKIP } kind = PASS;
  std::string reason;
};

void set_variables(const std::string& environment) {
  std::istringstream in(environment);
  for (std::string entry; in >> entry;) {
    const size_t equals = entry.find('=');
    setenv(entry.substr(0, equals).c_str(), entry.substr(equals + 1).c_str(), 1);
  }
}

struct Ending {
  int status;
  std::string words;  // what it said on stderr
};

// Variables are read once per process, so a case that sets some gets a process of its own.
bool start_and_wait(const Case& test, Ending* ending) {
  int pipe_ends[2] = {-1, -1};
  if (pipe(pipe_ends) != 0) return false;
  const pid_t child = fork();
  if (child == 0) {
    dup2(pipe_ends[1], STDERR_FILENO);
    close(pipe_ends[0]);
    close(pipe_ends[1]);
    set_variables(test.environment);
    setenv(kChildMarker, "1", 1);
    execl("/proc/self/exe", "self", test.name.c_str(), static_cast<char*>(nullptr));
    _exit(127);
  }
  close(pipe_ends[1]);
  char buffer[4096];
  for (ssize_t got = 0; (got = read(pipe_ends[0], buffer, sizeof(buffer))) > 0;) {
    ending->words.append(buffer, static_cast<size_t>(got));
  }
  close(pipe_ends[0]);
  return child > 0 && waitpid(child, &ending->status, 0) == child;
}

std::string last_line(const std::string& text) {
  const size_t end = text.find_last_not_of('\n');
  if (end == std::string::npos) return "";
  const size_t before = text.find_last_of('\n', end);
  const size_t begin = before == std::string::npos ? 0 : before + 1;
  return text.substr(begin, end + 1 - begin);
}

Verdict run_in_child(const Case& test) {
  const bool must_die = !test.last_words.empty();
  Ending ending{};
  if (!start_and_wait(test, &ending)) return {Verdict::FAIL, "cannot start a process"};
  if (WIFEXITED(ending.status) && WEXITSTATUS(ending.status) == kSkipped) {
    return {Verdict::SKIP, last_line(ending.words)};
  }
  const std::string where = "in its own process (with " + test.environment + ")";
  if (!must_die) {
    std::fputs(ending.words.c_str(), stderr);
    if (WIFEXITED(ending.status) && WEXITSTATUS(ending.status) == 0) return {};
    return {Verdict::FAIL, where};
  }
  // A sanitizer turns the signal into an exit.
  const bool died = WIFSIGNALED(ending.status) || WEXITSTATUS(ending.status) > 1;
  if (died && ending.words.find(test.last_words) != std::string::npos) return {};
  for (char& c : ending.words) c = c == '\n' ? ' ' : c;
  const std::string how = where +
                          (died ? ": it died without saying \"" : ": it did not die, expected \"") +
                          test.last_words + "\"; it said: " + ending.words;
  return {Verdict::FAIL, how};
}

Verdict run_here(const Case& test) {
  try {
    test.body();
    return {};
  } catch (const Skipped& skipped) {
    return {Verdict::SKIP, skipped.what()};
  } catch (const std::exception& error) {
    return {Verdict::FAIL, error.what()};
  }
}

// The process' exit status: of several cases, whether one failed.
int run(const Case& test) {
  const bool is_child = getenv(kChildMarker) != nullptr;
  const bool separate = !test.environment.empty() || !test.last_words.empty();
  const Verdict verdict = separate && !is_child ? run_in_child(test) : run_here(test);
  if (is_child) {  // its parent prints the verdict
    if (verdict.kind != Verdict::PASS) std::fprintf(stderr, "%s\n", verdict.reason.c_str());
    return verdict.kind == Verdict::SKIP ? kSkipped : verdict.kind == Verdict::FAIL ? 1 : 0;
  }
  static constexpr const char* kNames[] = {"PASS", "FAIL", "SKIP"};
  std::printf("%s %s%s%s\n", kNames[verdict.kind], test.name.c_str(),
              verdict.reason.empty() ? "" : " ", verdict.reason.c_str());
  std::fflush(stdout);
  return verdict.kind == Verdict::FAIL ? 1 : 0;
}

}  // namespace
}  // namespace check

int main(int argc, char** argv) {
  using check::cases;
  if (argc == 2 && std::strcmp(argv[1], "--list") == 0) {
    for (const check::Case& test : cases()) std::printf("%s\n", test.name.c_str());
    return 0;
  }
  int status = 0;
  int ran = 0;
  for (const check::Case& test : cases()) {
    bool wanted = argc == 1;
    for (int i = 1; i < argc; ++i) wanted = wanted || test.name == argv[i];
    if (!wanted) continue;
    ++ran;
    if (const int result = check::run(test); result != 0) status = result;
  }
  if (ran == 0) {
    std::fprintf(stderr, "no such case\n");
    return 2;
  }
  return status;
}
