#include <ATen/native/musa/HostLoops.h>

#include <ATen/native/musa/HostCast.h>
#include <c10/util/SmallVector.h>
#include <musa_host.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#include "torch_musa/csrc/core/MUSAStream.h"

namespace at::native::host_loops {
namespace {

using c10::ScalarType;

// Work smaller than this is not worth a second thread; the figure CPU kernels use.
constexpr int64_t kGrain = 32768;
// Elements cast at a time: all operands' buffers together stay within the first two cache levels.
constexpr int64_t kCastBlock = 512;
constexpr size_t kMaxElementSize = 16;
constexpr size_t kMaxOperands = 8;

struct Operand {
  char* data;
  ScalarType held;  // dtype in memory
  ScalarType seen;  // dtype the loop works on
  int64_t held_size;
  int64_t seen_size;
  bool is_output;
};

// Everything a launch needs once the iterator is gone: work runs in stream order, after the op has
// returned.
struct Launch {
  InnerLoop loop;
  c10::SmallVector<Operand, 4> operands;
  c10::SmallVector<int64_t, 8> shape;     // innermost first, at least one dimension
  c10::SmallVector<int64_t, 32> strides;  // [dimension][operand], in bytes
  std::array<std::array<char, kMaxElementSize>, kMaxOperands> scalars{};
  int64_t numel = 0;
  bool casts = false;

  void run(int64_t begin, int64_t end) const {
    const size_t count = operands.size();
    std::vector<int64_t> position(shape.size());
    std::array<char*, kMaxOperands> data{};
    int64_t rest = begin;
    for (size_t i = 0; i < count; ++i) {
      data[i] = operands[i].data;
    }
    for (size_t dim = 0; dim < shape.size(); ++dim) {
      position[dim] = rest % shape[dim];
      rest /= shape[dim];
      for (size_t i = 0; i < count; ++i) {
        data[i] += position[dim] * strides[dim * count + i];
      }
    }
    while (begin < end) {
      const int64_t n = std::min(shape[0] - position[0], end - begin);
      if (casts) {
        run_casting(data.data(), n);
      } else {
        loop(data.data(), strides.data(), n);
      }
      begin += n;
      if (begin < end) {
        next_row(position, data);
      }
    }
  }

 private:
  // From the end of one row (partial, where the piece began inside it) to the start of the next.
  void next_row(std::vector<int64_t>& position, std::array<char*, kMaxOperands>& data) const {
    const size_t count = operands.size();
    for (size_t i = 0; i < count; ++i) {
      data[i] -= position[0] * strides[i];
    }
    position[0] = 0;
    for (size_t dim = 1; dim < shape.size(); ++dim) {
      if (++position[dim] < shape[dim]) {
        for (size_t i = 0; i < count; ++i) {
          data[i] += strides[dim * count + i];
        }
        return;
      }
      for (size_t i = 0; i < count; ++i) {
        data[i] -= (shape[dim] - 1) * strides[dim * count + i];
      }
      position[dim] = 0;
    }
  }

  // One row, block by block: inputs of another dtype are cast into buffers, the loop runs on those,
  // and outputs are cast out of theirs. Operands whose dtype fits are used where they lie.
  void run_casting(char* const* row, int64_t n) const {
    alignas(64) char buffers[kMaxOperands][kCastBlock * kMaxElementSize];
    const size_t count = operands.size();
    std::array<char*, kMaxOperands> data{};
    std::array<int64_t, kMaxOperands> steps{};
    for (int64_t done = 0; done < n; done += kCastBlock) {
      const int64_t block = std::min(kCastBlock, n - done);
      for (size_t i = 0; i < count; ++i) {
        const Operand& operand = operands[i];
        char* held = row[i] + done * strides[i];
        if (operand.held == operand.seen) {
          data[i] = held;
          steps[i] = strides[i];
          continue;
        }
        data[i] = buffers[i];
        steps[i] = operand.seen_size;
        if (!operand.is_output) {
          cast_run(operand.seen, buffers[i], operand.seen_size, operand.held, held, strides[i],
                   block);
        }
      }
      loop(data.data(), steps.data(), block);
      for (size_t i = 0; i < count; ++i) {
        const Operand& operand = operands[i];
        if (operand.is_output && operand.held != operand.seen) {
          cast_run(operand.held, row[i] + done * strides[i], strides[i], operand.seen, buffers[i],
                   operand.seen_size, block);
        }
      }
    }
  }
};

}  // namespace

void launch(TensorIteratorBase& iter, c10::ArrayRef<ScalarType> types, CpuScalars scalars,
            InnerLoop loop) {
  const auto count = static_cast<size_t>(iter.ntensors());
  TORCH_INTERNAL_ASSERT(types.empty() || types.size() == count, "the functor has ", types.size(),
                        " operands, the iterator ", count);
  TORCH_INTERNAL_ASSERT(count <= kMaxOperands);
  const auto is_scalar = [&](int i) {
    return scalars == CpuScalars::Allowed && i >= iter.noutputs() && iter.is_cpu_scalar(i);
  };
  for (int i = 0; i < iter.ntensors(); ++i) {
    TORCH_INTERNAL_ASSERT(iter.device(i).is_privateuseone() || is_scalar(i), "argument ", i,
                          ": expected a musa device but found ", iter.device(i));
  }
  if (iter.numel() == 0) {
    return;
  }

  auto work = std::make_shared<Launch>();
  work->loop = std::move(loop);
  work->numel = iter.numel();
  work->shape.assign(iter.shape().begin(), iter.shape().end());
  if (work->shape.empty()) {
    work->shape.push_back(1);
  }
  work->strides.assign(work->shape.size() * count, 0);
  for (int i = 0; i < iter.ntensors(); ++i) {
    Operand operand{};
    operand.data = static_cast<char*>(iter.data_ptr(i));
    operand.held = iter.dtype(i);
    operand.seen = types.empty() ? operand.held : types[i];
    operand.held_size = static_cast<int64_t>(c10::elementSize(operand.held));
    operand.seen_size = static_cast<int64_t>(c10::elementSize(operand.seen));
    operand.is_output = i < iter.noutputs();
    if (operand.held != operand.seen) {
      TORCH_CHECK(is_castable(operand.held) && is_castable(operand.seen), "cannot convert between ",
                  operand.held, " and ", operand.seen, " on musa");
    }
    if (is_scalar(i)) {
      // The host's memory may change once the op has returned, so its value travels with the
      // launch. Its strides are zero already.
      char* value = work->scalars[i].data();
      cast_run(operand.seen, value, operand.seen_size, operand.held, operand.data,
               operand.held_size, 1);
      operand.data = value;
      operand.held = operand.seen;
    } else {
      for (size_t dim = 0; dim < static_cast<size_t>(iter.ndim()); ++dim) {
        work->strides[dim * count + i] = iter.strides(i)[dim];
      }
    }
    work->casts |= operand.held != operand.seen;
    work->operands.push_back(operand);
  }

  const c10::DeviceIndex device = iter.device(0).index();
  const auto stream = c10::musa::getCurrentMUSAStream(device);
  ::musa::host::enqueue(
      device, stream.stream(),
      [work] {
        ::musa::host::parallel_for(0, work->numel, kGrain,
                                   [&](int64_t begin, int64_t end) { work->run(begin, end); });
      },
      "elementwise kernel");
}

}  // namespace at::native::host_loops
