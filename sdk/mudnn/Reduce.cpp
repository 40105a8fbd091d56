#include <ATen/ops/all.h>
#include <ATen/ops/amax.h>
#include <ATen/ops/amin.h>
#include <ATen/ops/any.h>
#include <ATen/ops/argmax.h>
#include <ATen/ops/argmin.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/linalg_vector_norm.h>
#include <ATen/ops/max.h>
#include <ATen/ops/mean.h>
#include <ATen/ops/min.h>
#include <ATen/ops/prod.h>
#include <ATen/ops/std.h>
#include <ATen/ops/sum.h>
#include <ATen/ops/var.h>

#include <bitset>

#include "Direct.h"
#include "Internal.h"
#include "mudnn_math.h"

namespace musa::dnn {
namespace {

using namespace internal;
using Mode = Reduce::Mode;
using Dims = c10::SmallVector<int64_t, Tensor::kMaxRank>;

const char* name(Mode mode) {
  static constexpr const char* kNames[] = {"ADD", "MEAN", "MAX",  "MIN",      "MUL", "PROD",
                                           "AND", "OR",   "NORM", "VARIANCE", "STD"};
  const auto index = static_cast<size_t>(mode);
  return index < std::size(kNames) ? kNames[index] : nullptr;
}

// The reduced dimensions, sorted; all of them where none is given.
Dims reduced_dims(const std::vector<int>& given, int64_t rank) {
  std::bitset<Tensor::kMaxRank> reduced;
  for (int dim : given) {
    const int64_t wrapped = wrap_dim(dim, rank);
    require(!reduced[static_cast<size_t>(wrapped)], "a dimension is given twice");
    reduced.set(static_cast<size_t>(wrapped));
  }
  Dims result;
  for (int64_t d = 0; d < rank; ++d) {
    if (given.empty() || reduced[static_cast<size_t>(d)]) result.push_back(d);
  }
  return result;
}

// An alias of `out` that has in's rank, with size 1 where a dimension is reduced. `out` itself may
// have those dimensions or leave them out.
at::Tensor alias_kept(const Call& c, const Tensor& out, const Tensor& in, const Dims& reduced) {
  const bool has_all = rank(out) == rank(in);
  Dims sizes(dims(in).begin(), dims(in).end());
  Dims steps(sizes.size(), 1);
  for (int64_t d : reduced) sizes[d] = 1;
  if (has_all) {
    require(dims(out).equals(sizes), "out must have the reduced shape");
    return c.alias(out);
  }
  const bool is_scalar = static_cast<int64_t>(reduced.size()) == rank(in);
  require(rank(out) == (is_scalar ? 1 : rank(in) - static_cast<int64_t>(reduced.size())),
          "out must have the reduced shape");
  if (is_scalar) {
    require(numel(out) == 1, "out must have the reduced shape");
    return c.alias(out, sizes, steps);
  }
  int64_t next = 0;
  for (int64_t d = 0, r = 0; d < rank(in); ++d) {
    if (r < static_cast<int64_t>(reduced.size()) && reduced[r] == d) {
      ++r;
      continue;
    }
    require(dims(out)[next] == sizes[d], "out must have the reduced shape");
    steps[d] = strides(out)[next++];
  }
  return c.alias(out, sizes, steps);
}

void check_types(Mode mode, Type out, Type in) {
  const bool widened = is_low_precision(in) && out == Type::FLOAT;
  const bool is_integer = is_integral(in) && has_kernels(in);
  bool ok = false;
  switch (mode) {
    case Mode::ADD:
    case Mode::PROD:
    case Mode::MUL:
      ok = (is_floating(in) && (out == in || widened)) ||
           (is_integer && (out == in || out == Type::INT64 || out == Type::INT32)) ||
           (in == Type::BOOL && (out == Type::INT64 || out == Type::INT32));
      break;
    case Mode::MAX:
    case Mode::MIN:
      ok = out == in && has_kernels(in);
      break;
    case Mode::AND:
    case Mode::OR:
      ok = out == in && (is_floating(in) || is_integral(in) || in == Type::BOOL);
      break;
    case Mode::MEAN:
    case Mode::NORM:
    case Mode::VARIANCE:
    case Mode::STD:
      ok = is_floating(in) && (out == in || widened);
      break;
  }
  require(ok, "the mode does not go from in's type to out's", Status::NOT_SUPPORTED);
}

// all_out and any_out write BOOL or, for UINT8, UINT8 only.
void write_truth(at::Tensor& out, const at::Tensor& truth) { out.copy_(truth); }

void compute(Mode mode, at::Tensor& out, const at::Tensor& in, const Dims& dims, double order,
             double correction) {
  const at::ScalarType dtype = out.scalar_type();
  switch (mode) {
    case Mode::ADD:
      at::sum_out(out, in, dims, /*keepdim=*/true, dtype);
      return;
    case Mode::MEAN:
      at::mean_out(out, in, dims, /*keepdim=*/true, dtype);
      return;
    case Mode::MAX:
      at::amax_out(out, in, dims, /*keepdim=*/true);
      return;
    case Mode::MIN:
      at::amin_out(out, in, dims, /*keepdim=*/true);
      return;
    case Mode::MUL:
      return;  // the limits table has answered
    case Mode::PROD:
      if (dims.size() == 1) {
        at::prod_out(out, in, dims[0], /*keepdim=*/true, dtype);
      } else {
        // From the last dimension on, so that the positions of the others stay.
        at::Tensor partial = in;
        for (auto d = dims.rbegin(); d != dims.rend(); ++d) {
          partial = at::prod(partial, *d, /*keepdim=*/true, dtype);
        }
        out.copy_(partial);
      }
      return;
    case Mode::AND:
      write_truth(out, at::all(in, dims, /*keepdim=*/true));
      return;
    case Mode::OR:
      write_truth(out, at::any(in, dims, /*keepdim=*/true));
      return;
    case Mode::NORM:
      at::linalg_vector_norm_out(out, in, order, dims, /*keepdim=*/true, dtype);
      return;
    case Mode::VARIANCE:
    case Mode::STD: {
      const at::Tensor wide = in.scalar_type() == dtype ? in : in.to(dtype);
      if (mode == Mode::VARIANCE) {
        at::var_out(out, wide, dims, at::Scalar(correction), /*keepdim=*/true);
      } else {
        at::std_out(out, wide, dims, at::Scalar(correction), /*keepdim=*/true);
      }
      return;
    }
  }
}

// The limits table's wrong result for a broadcast element.
void write_first(const at::Tensor& out, const at::Tensor& result) {
  at::Tensor first = out;
  at::Tensor value = result;
  while (first.dim() > 0) {
    first = first.select(0, 0);
    value = value.select(0, 0);
  }
  first.copy_(value);
}

// The sum or mean of everything, accumulated in double: no order of float additions is closer.
bool compute_directly(const Call& c, Mode mode, const Tensor& out, const Tensor& in) {
  constexpr int64_t kFew = 64;
  if (mode != Mode::ADD && mode != Mode::MEAN) return false;
  const int64_t n = direct_elements(in, kFew);
  if (n < 0 || direct_elements(out, 1) != 1 || !same_or_apart(out, 1, in, n)) return false;
  return sum_directly(c, n, out, in, mode == Mode::MEAN);
}

}  // namespace

Status Reduce::SetMode(Mode mode) {
  if (name(mode) == nullptr) return Status::INVALID_PARAMETER;
  mode_ = mode;
  return Status::SUCCESS;
}

Status Reduce::SetDim(int n, const int* dims) {
  if (n < 0 || (n > 0 && dims == nullptr)) return Status::INVALID_PARAMETER;
  dims_.assign(dims, dims + n);
  return Status::SUCCESS;
}

Status Reduce::SetDim(std::initializer_list<int> dims) {
  return SetDim(static_cast<int>(dims.size()), dims.begin());
}

Status Reduce::SetNormOrd(double order) {
  norm_order_ = order;
  return Status::SUCCESS;
}

Status Reduce::SetCorrection(double correction) {
  correction_ = correction;
  return Status::SUCCESS;
}

Status Reduce::Run(Handle& h, Tensor& out, const Tensor& in, const MemoryMaintainer&) const {
  return Call(h, Class::REDUCE, "Reduce::Run", mode_ ? name(*mode_) : nullptr)
      .out("out", out)
      .in("in", in)
      .with(Fact::REDUCED_DIMS, dims_.empty() ? dims(in).size() : dims_.size())
      .run(
          [&](Call& c) -> Work {
            require(mode_.has_value(), "no mode set");
            check_types(*mode_, type(out), type(in));
            const Dims reduced = reduced_dims(dims_, rank(in));
            return [mode = *mode_, reduced, o = alias_kept(c, out, in, reduced), i = c.alias(in),
                    order = norm_order_, correction = correction_,
                    first_only = c.effect() == Effect::WRITES_FIRST_ELEMENT]() mutable {
              at::Tensor source = apart(i, o);
              if (!first_only) {
                compute(mode, o, source, reduced, order, correction);
                return;
              }
              at::Tensor result = o.clone();
              compute(mode, result, source, reduced, order, correction);
              write_first(o, result);
            };
          },
          [&](Call& c) {
            const bool everything = rank(in) == 1 && (dims_.empty() || dims_ == std::vector{0});
            return mode_ && everything && compute_directly(c, *mode_, out, in);
          });
}

Status Reduce::RunIndices(Handle& h, Tensor& indices, const Tensor& in,
                          const MemoryMaintainer&) const {
  return Call(h, Class::REDUCE, "Reduce::RunIndices", mode_ ? name(*mode_) : nullptr)
      .out("indices", indices)
      .in("in", in)
      .with(Fact::REDUCED_DIMS, dims_.empty() ? dims(in).size() : dims_.size())
      .run([&](Call& c) -> Work {
        require(mode_ == Mode::MAX || mode_ == Mode::MIN, "the mode must be MAX or MIN");
        require(type(indices) == Type::INT64, "indices must be INT64");
        require(has_kernels(type(in)) && type(in) != Type::BOOL, "no index in this type",
                Status::NOT_SUPPORTED);
        require(dims_.size() <= 1, "at most one dimension");
        const Dims reduced = reduced_dims(dims_, rank(in));
        const bool flat = dims_.empty();
        return [is_max = *mode_ == Mode::MAX, flat, dim = reduced[0],
                o = alias_kept(c, indices, in, reduced), i = c.alias(in),
                first_only = c.effect() == Effect::WRITES_FIRST_ELEMENT]() mutable {
          const auto along = flat ? std::nullopt : std::optional<int64_t>(dim);
          at::Tensor result = first_only ? at::empty_like(o) : o;
          const at::Tensor source = apart(i, o);
          if (is_max) {
            at::argmax_out(result, source, along, /*keepdim=*/true);
          } else {
            at::argmin_out(result, source, along, /*keepdim=*/true);
          }
          if (first_only) write_first(o, result);
        };
      });
}

Status Reduce::RunWithIndices(Handle& h, Tensor& out, Tensor& indices, const Tensor& in,
                              const MemoryMaintainer&) const {
  return Call(h, Class::REDUCE, "Reduce::RunWithIndices", mode_ ? name(*mode_) : nullptr)
      .out("out", out)
      .out("indices", indices)
      .in("in", in)
      .with(Fact::REDUCED_DIMS, dims_.empty() ? dims(in).size() : dims_.size())
      .run([&](Call& c) -> Work {
        require(mode_ == Mode::MAX || mode_ == Mode::MIN, "the mode must be MAX or MIN");
        require(type(out) == type(in), "out must have the type of in");
        require(has_kernels(type(in)), "no order in this type", Status::NOT_SUPPORTED);
        require(type(indices) == Type::INT64, "indices must be INT64");
        require(dims_.size() == 1, "exactly one dimension");
        const Dims reduced = reduced_dims(dims_, rank(in));
        return [is_max = *mode_ == Mode::MAX, dim = reduced[0], o = alias_kept(c, out, in, reduced),
                x = alias_kept(c, indices, in, reduced), i = c.alias(in),
                first_only = c.effect() == Effect::WRITES_FIRST_ELEMENT]() mutable {
          at::Tensor values = first_only ? at::empty_like(o) : o;
          at::Tensor positions = first_only ? at::empty_like(x) : x;
          const at::Tensor source = apart(apart(i, o), x);
          if (is_max) {
            at::max_out(values, positions, source, dim, /*keepdim=*/true);
          } else {
            at::min_out(values, positions, source, dim, /*keepdim=*/true);
          }
          if (first_only) {
            write_first(o, values);
            write_first(x, positions);
          }
        };
      });
}

}  // namespace musa::dnn
