#include "Lending.h"

#include <ATen/cuda/CUDAContextLight.h>
#include <c10/cuda/CUDACachingAllocator.h>

#include <atomic>
#include <mutex>
#include <utility>

#include "Loan.h"

namespace musa::dnn::internal::target {
namespace {

// Names as PyTorch's header has them.
namespace forwarding {
using namespace c10;                              // NOLINT
using namespace c10::cuda;                        // NOLINT
using namespace c10::cuda::CUDACachingAllocator;  // NOLINT
#include "ForwardingAllocator.h"
}  // namespace forwarding

using c10::cuda::CUDACachingAllocator::CUDAAllocator;

std::atomic<CUDAAllocator*>& allocator() { return c10::cuda::CUDACachingAllocator::allocator; }

// ATen's workspaces stay with the stream and the thread.
bool may_be_kept(size_t bytes) {
  return bytes == at::cuda::getChosenWorkspaceSize() ||
         bytes == at::cuda::getCUDABlasLtWorkspaceSize();
}

class Lender final : public forwarding::ForwardingAllocator {
 public:
  c10::DataPtr allocate(size_t bytes) override {
    if (c10::DataPtr lent = take_lent(bytes, may_be_kept)) return lent;
    return next().allocate(bytes);
  }

  // Stays what it was: other threads may be in a call through this object when it leaves.
  CUDAAllocator& next() const override { return *next_.load(std::memory_order_relaxed); }

  // Stands in place of PyTorch's allocator as long as any thread has lent memory.
  void enter() {
    const std::lock_guard lock(mutex_);
    if (users_++ != 0 || in_place_) return;
    next_ = allocator().load();
    allocator().store(this);
    in_place_ = true;
  }
  void leave() {
    const std::lock_guard lock(mutex_);
    if (--users_ != 0) return;
    // Somebody else's allocator that has come in front since goes on calling this one.
    CUDAAllocator* self = this;
    in_place_ = !allocator().compare_exchange_strong(self, next_.load());
  }

 private:
  std::mutex mutex_;
  int users_ = 0;
  bool in_place_ = false;
  std::atomic<CUDAAllocator*> next_{nullptr};
};

Lender& lender() {
  static auto* one = new Lender;  // memory is freed after the process' statics, too
  return *one;
}

class InPlace {
 public:
  InPlace() { lender().enter(); }
  ~InPlace() { lender().leave(); }
  InPlace(const InPlace&) = delete;
  InPlace& operator=(const InPlace&) = delete;
};

}  // namespace

void lend(at::TensorList places, c10::function_ref<void()> body) {
  const InPlace in_place;
  with_loan(places, body);
}

void stop_lending() { end_loan(); }

}  // namespace musa::dnn::internal::target
