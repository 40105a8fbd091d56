#include "Loan.h"

#include <c10/util/SmallVector.h>

#include <memory>
#include <stdexcept>

namespace musa::dnn::internal {
namespace {

struct Block {
  void* memory;
  size_t bytes;
  bool free;
};

struct Loan {
  c10::Device device;
  Loan* outer;  // the thread's loan around this one
  c10::SmallVector<Block, 4> blocks = {};
  int in_use = 0;
};

thread_local Loan* current = nullptr;

class MadeCurrent {
 public:
  explicit MadeCurrent(Loan* loan) { current = loan; }
  ~MadeCurrent() { current = current->outer; }
  MadeCurrent(const MadeCurrent&) = delete;
  MadeCurrent& operator=(const MadeCurrent&) = delete;
};

}  // namespace

void with_loan(at::TensorList places, c10::function_ref<void()> body) {
  auto loan = std::make_unique<Loan>(Loan{.device = places[0].device(), .outer = current});
  for (const at::Tensor& place : places) {
    loan->blocks.push_back({place.mutable_data_ptr(), place.nbytes(), /*free=*/true});
  }
  {
    const MadeCurrent made_current(loan.get());
    body();
  }
  if (loan->in_use != 0) {
    (void)loan.release();  // who has the memory will give it back there
    throw std::runtime_error("an operator keeps memory that was lent for its results");
  }
}

c10::DataPtr take_lent(size_t bytes) {
  if (current == nullptr) return {};
  for (Block& block : current->blocks) {
    if (!block.free || block.bytes != bytes) continue;
    block.free = false;
    ++current->in_use;
    return {block.memory, current, [](void* loan) { --static_cast<Loan*>(loan)->in_use; },
            current->device};
  }
  return {};
}

}  // namespace musa::dnn::internal
