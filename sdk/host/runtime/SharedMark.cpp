#include "SharedMark.h"

#include <errno.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <new>
#include <thread>

namespace musa::host {

namespace {
constexpr uint64_t kMagic = 0x6d757361'65766e74;  // "musaevnt"
constexpr auto kPoll = std::chrono::microseconds(50);
}  // namespace

struct SharedMark::Page {
  uint64_t magic = kMagic;
  std::atomic<uint64_t> recorded{0};
  std::atomic<uint64_t> reached{0};
  std::atomic<pid_t> recorder{0};
};

std::shared_ptr<SharedMark> SharedMark::create() {
  const int file = memfd_create("musa-event", MFD_CLOEXEC);
  if (file < 0) throw std::bad_alloc();
  void* page = ftruncate(file, sizeof(Page)) != 0
                   ? MAP_FAILED
                   : mmap(nullptr, sizeof(Page), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  if (page == MAP_FAILED) {
    close(file);
    throw std::bad_alloc();
  }
  return std::shared_ptr<SharedMark>(new SharedMark(file, new (page) Page));
}

std::shared_ptr<SharedMark> SharedMark::open(int file) {
  struct stat status{};
  if (fstat(file, &status) != 0 || status.st_size != static_cast<off_t>(sizeof(Page))) {
    return nullptr;
  }
  void* page = mmap(nullptr, sizeof(Page), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  if (page == MAP_FAILED) return nullptr;
  if (static_cast<Page*>(page)->magic != kMagic) {
    munmap(page, sizeof(Page));
    return nullptr;
  }
  return std::shared_ptr<SharedMark>(new SharedMark(file, static_cast<Page*>(page)));
}

SharedMark::~SharedMark() {
  munmap(page_, sizeof(Page));
  close(file_);
}

uint64_t SharedMark::record() {
  page_->recorder.store(getpid());
  return page_->recorded.fetch_add(1) + 1;
}

void SharedMark::reach(uint64_t record) {
  uint64_t before = page_->reached.load();
  while (before < record && !page_->reached.compare_exchange_weak(before, record)) {
  }
}

uint64_t SharedMark::last_record() const { return page_->recorded.load(); }

bool SharedMark::reached(uint64_t record) const { return page_->reached.load() >= record; }

bool SharedMark::wait(uint64_t record) const {
  while (!reached(record)) {
    if (kill(page_->recorder.load(), 0) != 0 && errno == ESRCH) return reached(record);
    std::this_thread::sleep_for(kPoll);
  }
  return true;
}

}  // namespace musa::host
