#include "torch_musa/csrc/core/MUSAMemPool.h"

#include "torch_musa/csrc/core/MUSACachingAllocator.h"
#include "torch_musa/csrc/core/MUSAFunctions.h"

namespace c10::musa {

MemPool::MemPool(bool use_on_oom, bool no_split)
    : id_(MUSACachingAllocator::new_user_pool_id()), device_(current_device()) {
  MUSACachingAllocator::createOrIncrefPool(device_, id_, use_on_oom, no_split);
}

MemPool::~MemPool() {
  try {
    MUSACachingAllocator::releasePool(device_, id_);
    MUSACachingAllocator::get()->emptyCache(id_);
  } catch (...) {  // in the middle of a capture, or at exit: the next empty_cache does it
  }
}

int MemPool::use_count() const { return MUSACachingAllocator::getPoolUseCount(device_, id_); }

}  // namespace c10::musa
