// libmusart: parallel_for and the threads behind it.
#include <sys/wait.h>
#include <unistd.h>
#include <atomic>
#include <stdexcept>
#include <vector>

#include "runtime_support.h"

TEST(parallel_for_covers_every_index_once) {
  for (int64_t count : {int64_t{1}, int64_t{7}, int64_t{1000}, int64_t{100003}}) {
    std::vector<std::atomic<int>> hits(static_cast<size_t>(count));
    musa::host::parallel_for(5, 5 + count, 10, [&](int64_t begin, int64_t end) {
      CHECK(begin < end);
      for (int64_t i = begin; i < end; ++i) ++hits[static_cast<size_t>(i - 5)];
    });
    for (const auto& hit : hits) CHECK_EQ(hit.load(), 1);
  }
  musa::host::parallel_for(3, 3, 1, [](int64_t, int64_t) { CHECK(false); });
}

TEST(parallel_for_nests_and_throws) {
  std::atomic<int> sum{0};
  musa::host::parallel_for(0, 64, 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      musa::host::parallel_for(0, 10, 1,
                               [&](int64_t b, int64_t e) { sum += static_cast<int>(e - b); });
    }
  });
  CHECK_EQ(sum.load(), 640);
  bool thrown = false;
  try {
    musa::host::parallel_for(0, 1000, 1, [](int64_t begin, int64_t) {
      if (begin == 0) throw std::runtime_error("first");
    });
  } catch (const std::runtime_error&) {
    thrown = true;
  }
  CHECK(thrown);
}

#ifndef __SANITIZE_THREAD__  // which refuses threads in the child of a threaded process
TEST(parallel_for_survives_a_fork) {
  std::atomic<int64_t> count{0};
  const auto body = [&](int64_t begin, int64_t end) { count += end - begin; };
  musa::host::parallel_for(0, 1000, 1, body);
  const pid_t child = fork();
  if (child == 0) {
    count = 0;
    musa::host::parallel_for(0, 1000, 1, body);
    _exit(count == 1000 ? 0 : 1);
  }
  int status = -1;
  CHECK_EQ(waitpid(child, &status, 0), child);
  CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}
#endif
