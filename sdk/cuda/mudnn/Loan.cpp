#include "Loan.h"

#include <c10/util/SmallVector.h>

#include <atomic>
#include <memory>
#include <stdexcept>

namespace musa::dnn::internal {
namespace {

struct Block {
  void* memory;
  size_t bytes;
  bool free;
};

// Lives until its call has ended and all of its memory is given back, on whichever thread.
struct Loan {
  Loan(c10::Device device, Loan* outer) : device(device), outer(outer) {}

  const c10::Device device;
  Loan* const outer;  // the thread's loan around this one
  c10::SmallVector<Block, 4> blocks = {};
  std::atomic<int> holders{1};  // the call, and every block in use
};

void leave(Loan* loan) {
  if (loan->holders.fetch_sub(1) == 1) delete loan;
}

thread_local Loan* current = nullptr;

class MadeCurrent {
 public:
  explicit MadeCurrent(Loan* loan) : loan_(loan) { current = loan; }
  ~MadeCurrent() {
    current = loan_->outer;
    leave(loan_);
  }
  MadeCurrent(const MadeCurrent&) = delete;
  MadeCurrent& operator=(const MadeCurrent&) = delete;

 private:
  Loan* loan_;
};

}  // namespace

void with_loan(at::TensorList places, c10::function_ref<void()> body) {
  auto loan = std::make_unique<Loan>(places[0].device(), current);
  for (const at::Tensor& place : places) {
    loan->blocks.push_back({place.mutable_data_ptr(), place.nbytes(), /*free=*/true});
  }
  const MadeCurrent made_current(loan.release());
  body();
  if (current->holders != 1) {
    throw std::runtime_error("an operator keeps memory that was lent for its results");
  }
}

void end_loan() {
  if (current != nullptr) current->blocks.clear();
}

c10::DataPtr take_lent(size_t bytes, bool (*may_be_kept)(size_t)) {
  if (current == nullptr) return {};
  for (Block& block : current->blocks) {
    if (!block.free || block.bytes != bytes) continue;
    if (may_be_kept != nullptr && may_be_kept(bytes)) return {};
    block.free = false;
    ++current->holders;
    return {block.memory, current, [](void* loan) { leave(static_cast<Loan*>(loan)); },
            current->device};
  }
  return {};
}

}  // namespace musa::dnn::internal
