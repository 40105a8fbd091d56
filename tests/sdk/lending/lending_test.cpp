// produce() and the memory that it lends, with the CPU's allocator in the place of CUDA's.
#include "Target.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/full.h>
#include <ATen/ops/ones.h>
#include <c10/core/Allocator.h>
#include <c10/core/CPUAllocator.h>

#include <cstdlib>
#include <algorithm>
#include <functional>
#include <stdexcept>
#include <thread>
#include <tuple>
#include <vector>

#include "Loan.h"
#include "Results.h"
#include "check.h"

namespace musa::dnn::internal::target {
namespace {

// Memory on 512 bytes, as CUDA's allocator gives it.
class Lender final : public c10::Allocator {
 public:
  c10::DataPtr allocate(size_t bytes) override {
    if (c10::DataPtr lent = take_lent(bytes)) {
      ++served;
      return lent;
    }
    void* memory = std::aligned_alloc(512, (bytes + 511) / 512 * 512);
    return {memory, memory, &std::free, at::kCPU};
  }
  void copy_data(void* to, const void* from, size_t bytes) const override {
    default_copy_data(to, from, bytes);
  }

  int served = 0;
};

Lender& lender() {
  static auto* one = [] {
    auto* made = new Lender;
    c10::SetCPUAllocator(made, /*priority=*/200);
    return made;
  }();
  return *one;
}

}  // namespace

void lend(at::TensorList places, c10::function_ref<void()> body) { with_loan(places, body); }
void stop_lending() { end_loan(); }

}  // namespace musa::dnn::internal::target

namespace {

using musa::dnn::internal::produce;
using musa::dnn::internal::take_lent;
using musa::dnn::internal::with_loan;
using musa::dnn::internal::target::lender;

at::Tensor place(at::IntArrayRef sizes) {
  lender();
  return at::full(sizes, -1.0, at::kFloat);
}

at::Tensor counted(int64_t n, double from = 0) { return at::arange(n, at::kFloat).add_(from); }

int served_by(const std::function<void()>& work) {
  const int before = lender().served;
  work();
  return lender().served - before;
}

TEST(a_result_is_made_in_its_place_without_a_copy) {
  const at::Tensor out = place({100});
  const void* made = nullptr;
  produce({out}, {}, [&] {
    at::Tensor result = at::empty({100}, at::kFloat);
    made = result.const_data_ptr();
    return result.copy_(counted(100));
  });
  CHECK(made == out.const_data_ptr());
  CHECK(at::equal(out, counted(100)));
}

TEST(a_temporary_that_got_the_memory_costs_a_copy_and_nothing_else) {
  const at::Tensor out = place({100});
  produce({out}, {}, [&] {
    const at::Tensor temporary = at::full({100}, 7.0, at::kFloat);
    CHECK(temporary.const_data_ptr() == out.const_data_ptr());
    return temporary * 3;
  });
  CHECK(at::equal(out, at::full({100}, 21.0, at::kFloat)));
}

TEST(results_of_one_size_in_each_others_memory_come_apart) {
  const at::Tensor a = place({64}), b = place({64}), c = place({64});
  produce({a, b, c}, {}, [&] {
    // Made in another order than they are given.
    const at::Tensor third = at::full({64}, 3.0, at::kFloat),
                     first = at::full({64}, 1.0, at::kFloat),
                     second = at::full({64}, 2.0, at::kFloat);
    CHECK(third.const_data_ptr() == a.const_data_ptr());
    return std::tuple(first, second, third);
  });
  CHECK(at::equal(a, at::full({64}, 1.0, at::kFloat)));
  CHECK(at::equal(b, at::full({64}, 2.0, at::kFloat)));
  CHECK(at::equal(c, at::full({64}, 3.0, at::kFloat)));
}

TEST(a_result_with_another_layout_in_the_same_memory_is_put_in_order) {
  const at::Tensor out = place({2, 3, 4, 5});
  const at::Tensor values = counted(120).view({2, 3, 4, 5});
  produce({out}, {}, [&] {
    const at::Tensor result = at::empty({2, 3, 4, 5}, at::kFloat, std::nullopt, std::nullopt,
                                        std::nullopt, at::MemoryFormat::ChannelsLast);
    CHECK(result.const_data_ptr() == out.const_data_ptr());
    result.copy_(values);
    return result;
  });
  CHECK(at::equal(out, values));
}

TEST(a_result_of_another_type_with_as_many_bytes_is_converted) {
  const at::Tensor out = place({64});
  produce({out}, {}, [&] { return at::full({64}, 5, at::kInt); });
  CHECK(at::equal(out, at::full({64}, 5.0, at::kFloat)));
}

TEST(what_is_read_keeps_its_values) {
  const at::Tensor both = counted(100);
  const int served = served_by([&] {
    produce({both}, {both}, [&] {
      at::Tensor sum = at::full({100}, 1.0, at::kFloat);
      return sum.add_(both);
    });
  });
  CHECK_EQ(served, 0);
  CHECK(at::equal(both, counted(100, 1)));
}

TEST(what_overlaps_a_part_of_the_place_is_read_whole) {
  const at::Tensor memory = counted(1024);
  const at::Tensor out = memory.narrow(0, 0, 512), read = memory.narrow(0, 256, 512);
  const at::Tensor expected = read + 1;
  produce({out}, {read}, [&] {
    at::Tensor sum = at::full({512}, 1.0, at::kFloat);
    return sum.add_(read);
  });
  CHECK(at::equal(out, expected));
}

TEST(places_that_are_no_allocation_of_their_own_are_not_lent) {
  const at::Tensor memory = place({1024});
  const std::vector<at::Tensor> places{memory.narrow(0, 1, 100),
                                       memory.view({32, 32}).t().slice(0, 0, 3),
                                       memory.slice(0, 0, 100, 2), memory.narrow(0, 0, 0)};
  for (const at::Tensor& out : places) {
    const at::Tensor values = counted(out.numel()).view(out.sizes());
    const int served = served_by([&] { produce({out}, {}, [&] { return values.clone(); }); });
    CHECK_EQ(served, 0);
    CHECK(at::equal(out, values));
  }
}

TEST(a_result_that_nobody_wants_is_left) {
  const at::Tensor out = place({10});
  produce({at::Tensor(), out}, {at::Tensor()},
          [&] { return std::tuple(counted(10), counted(10, 5)); });
  CHECK(at::equal(out, counted(10, 5)));
}

TEST(memory_that_is_kept_is_an_error_and_not_an_accident) {
  const at::Tensor out = place({100});
  at::Tensor kept;
  bool refused = false;
  try {
    produce({out}, {}, [&] {
      kept = at::empty({100}, at::kFloat);
      return counted(100);
    });
  } catch (const std::runtime_error&) {
    refused = true;
  }
  CHECK(refused);
  kept.reset();  // given back to a loan that is still there
}

TEST(a_copy_made_while_results_are_delivered_gets_no_place) {
  const at::Tensor a = place({16}), b = place({32}), c = place({16});
  produce({a, b, c}, {}, [&] {
    // The third is a part of the second's memory, and nobody has taken the first's.
    const at::Tensor block = at::full({32}, 3.0, at::kFloat);
    CHECK(block.const_data_ptr() == b.const_data_ptr());
    float* ones = new float[16];
    std::fill_n(ones, 16, 1.0F);
    const at::Tensor first =
        at::from_blob(ones, {16}, [](void* memory) { delete[] static_cast<float*>(memory); });
    return std::tuple(first, at::full({33}, 2.0, at::kFloat).narrow(0, 1, 32),
                      block.narrow(0, 16, 16));
  });
  CHECK(at::equal(a, at::full({16}, 1.0, at::kFloat)));
  CHECK(at::equal(b, at::full({32}, 2.0, at::kFloat)));
  CHECK(at::equal(c, at::full({16}, 3.0, at::kFloat)));
}

TEST(memory_kept_by_an_operator_that_throws_is_given_back_later_and_elsewhere) {
  const at::Tensor out = place({100});
  at::Tensor kept;
  try {
    produce({out}, {}, [&]() -> at::Tensor {
      kept = at::empty({100}, at::kFloat);
      throw std::invalid_argument("refused");
    });
  } catch (const std::invalid_argument&) {
  }
  CHECK(kept.const_data_ptr() == out.const_data_ptr());
  std::thread([&] { kept.reset(); }).join();
}

TEST(what_may_be_kept_is_not_lent) {
  const at::Tensor out = place({100});
  with_loan(at::TensorList(out), [&] {
    CHECK(!take_lent(out.nbytes(), [](size_t bytes) { return bytes == 400; }));
    CHECK(take_lent(out.nbytes(), [](size_t bytes) { return bytes == 401; }));
  });
}

TEST(an_operator_that_throws_leaves_no_loan_behind) {
  const at::Tensor out = place({100});
  try {
    produce({out}, {}, [&]() -> at::Tensor { throw std::invalid_argument("refused"); });
  } catch (const std::invalid_argument&) {
  }
  CHECK_EQ(served_by([] { at::empty({100}, at::kFloat); }), 0);
}

TEST(a_call_within_a_call_lends_its_own) {
  const at::Tensor outer = place({100}), inner = place({50});
  produce({outer}, {}, [&] {
    produce({inner}, {}, [&] { return counted(50); });
    at::Tensor result = at::empty({100}, at::kFloat);
    CHECK(result.const_data_ptr() == outer.const_data_ptr());
    return result.fill_(4);
  });
  CHECK(at::equal(inner, counted(50)));
  CHECK(at::equal(outer, at::full({100}, 4.0, at::kFloat)));
}

}  // namespace
