// The pool behind parallel_for: kernels of the stand-in spread their blocks over it.
#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstdlib>
#include <exception>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "Protect.h"
#include "musa_host.h"

namespace musa::host {
namespace {

// One parallel_for: pieces are taken by number until none is left.
class Job {
 public:
  Job(int64_t begin, int64_t end, int64_t piece, const std::function<void(int64_t, int64_t)>& body)
      : begin_(begin),
        end_(end),
        piece_(piece),
        pieces_((end - begin + piece - 1) / piece),
        body_(body),
        work_(DeviceAccess::current_work) {}

  bool exhausted() const { return next_.load(std::memory_order_relaxed) >= pieces_; }

  void work() {
    // A part of the caller's work, for messages and for what only work may do.
    const char* outer = std::exchange(DeviceAccess::current_work, work_);
    for (int64_t i = next_.fetch_add(1); i < pieces_; i = next_.fetch_add(1)) {
      const int64_t from = begin_ + i * piece_;
      try {
        body_(from, std::min(from + piece_, end_));
      } catch (...) {
        std::lock_guard lock(mutex_);
        if (!error_) error_ = std::current_exception();
      }
      if (done_.fetch_add(1) + 1 == pieces_) {
        std::lock_guard lock(mutex_);
        finished_.notify_all();
      }
    }
    DeviceAccess::current_work = outer;
  }

  void wait() {
    std::unique_lock lock(mutex_);
    finished_.wait(lock, [&] { return done_.load() == pieces_; });
    if (error_) std::rethrow_exception(error_);
  }

 private:
  const int64_t begin_;
  const int64_t end_;
  const int64_t piece_;
  const int64_t pieces_;
  const std::function<void(int64_t, int64_t)>& body_;
  const char* const work_;
  std::atomic<int64_t> next_{0};
  std::atomic<int64_t> done_{0};
  std::mutex mutex_;
  std::condition_variable finished_;
  std::exception_ptr error_;
};

thread_local bool in_parallel = false;

class Pool {
 public:
  explicit Pool(size_t workers) {
    for (size_t i = 0; i < workers; ++i) std::thread([this] { serve(); }).detach();
  }

  void run(const std::shared_ptr<Job>& job) {
    {
      std::lock_guard lock(mutex_);
      jobs_.push_back(job);
    }
    available_.notify_all();
    in_parallel = true;
    job->work();
    in_parallel = false;
    {
      std::lock_guard lock(mutex_);
      jobs_.erase(std::find(jobs_.begin(), jobs_.end(), job));
    }
    job->wait();
  }

 private:
  std::shared_ptr<Job> open_job() const {
    for (const auto& job : jobs_) {
      if (!job->exhausted()) return job;
    }
    return nullptr;
  }

  [[noreturn]] void serve() {
    in_parallel = true;
    for (;;) {
      std::shared_ptr<Job> job;
      {
        std::unique_lock lock(mutex_);
        available_.wait(lock, [&] { return (job = open_job()) != nullptr; });
      }
      job->work();
    }
  }

  std::mutex mutex_;
  std::condition_variable available_;
  std::vector<std::shared_ptr<Job>> jobs_;
};

size_t thread_count() {
  static const size_t count = [] {
    if (const char* text = std::getenv("OMP_NUM_THREADS"); text != nullptr) {
      if (const int value = std::atoi(text); value > 0) return static_cast<size_t>(value);
    }
    return static_cast<size_t>(std::max(std::thread::hardware_concurrency(), 1u));
  }();
  return count;
}

// The caller works too, so one thread fewer. Never destroyed: its threads never end. A forked child
// has none of the threads and starts its own pool.
std::atomic<Pool*> the_pool{nullptr};
std::mutex pool_mutex;

Pool& pool() {
  if (Pool* existing = the_pool.load(std::memory_order_acquire)) return *existing;
  std::lock_guard lock(pool_mutex);
  if (the_pool.load() == nullptr) {
    static std::once_flag once;
    std::call_once(once, [] {
      pthread_atfork([] { pool_mutex.lock(); }, [] { pool_mutex.unlock(); },
                     [] {
                       the_pool.store(nullptr);
                       pool_mutex.unlock();
                     });
    });
    the_pool.store(new Pool(thread_count() - 1), std::memory_order_release);
  }
  return *the_pool.load();
}

}  // namespace

void parallel_for(int64_t begin, int64_t end, int64_t grain,
                  const std::function<void(int64_t, int64_t)>& body) {
  if (begin >= end) return;
  const int64_t count = end - begin;
  grain = std::max<int64_t>(grain, 1);
  // A few pieces a thread: uneven ones balance out.
  const auto most = static_cast<int64_t>(thread_count()) * 4;
  const int64_t pieces = std::min((count + grain - 1) / grain, most);
  if (pieces == 1 || thread_count() == 1 || in_parallel) {
    body(begin, end);
    return;
  }
  pool().run(std::make_shared<Job>(begin, end, (count + pieces - 1) / pieces, body));
}

}  // namespace musa::host
