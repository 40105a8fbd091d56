// Results of ATen's operators that give tensors of their own, brought to where a call wants them. A
// target may lend such an operator the memory of its results (Target.h): what it allocates there
// needs no copy.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/util/FunctionRef.h>
#include <c10/util/SmallVector.h>

#include <initializer_list>
#include <tuple>
#include <utility>

namespace musa::dnn::internal {

using Results = c10::SmallVector<at::Tensor, 4>;

// Makes results and copies each to its place in `wanted`, in whose order they come; an undefined
// place is a result that nobody wants. The places hold no values before. `read` is what `make`
// reads.
void produce(at::TensorList wanted, at::TensorList read, c10::function_ref<Results()> make);

inline Results listed(at::Tensor result) { return {std::move(result)}; }

template <class... Tensors>
Results listed(std::tuple<Tensors...> results) {
  return std::apply([](auto&... each) { return Results{std::move(each)...}; }, results);
}

// The same with a function that returns a tensor or a tuple of them.
template <class Make>
void produce(std::initializer_list<at::Tensor> wanted, std::initializer_list<at::Tensor> read,
             Make make) {
  produce(at::TensorList(wanted), at::TensorList(read),
          c10::function_ref<Results()>([&] { return listed(make()); }));
}

}  // namespace musa::dnn::internal
