// muDNN: elementwise, reduction, ordering and data-movement classes. In every Run the handle comes
// first and outputs come before inputs; operands of one call have one type unless stated.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <vector>

#include "mudnn_base.h"

namespace musa::dnn {

// out = f(in). Alpha and beta are 0 until set. An integral operand takes its parameters from the
// int64 overloads and refuses the double ones.
class MUDNN_API Unary {
 public:
  enum class Mode {
    ABS,
    ACOS,
    ADD,  // in + alpha
    ATAN,
    CAST,  // the one mode where any two types may meet
    CEIL,
    CLIP,  // alpha <= out <= beta
    COS,
    ELU,  // in > 0 ? in : alpha * (exp(in) - 1)
    EQ,   // comparisons with alpha; out is BOOL
    ERF,
    EXP,
    FLOOR,
    FLOORDIV,           // floor(in / alpha)
    FLOORDIV_BY_ALPHA,  // floor(alpha / in)
    FLOORMOD,           // in - floor(in / alpha) * alpha
    GE,
    GELU,
    GELU_TANH,
    GT,
    HARDSIGMOID,  // clip(alpha * in + beta, 0, 1)
    HARDSWISH,
    IDENTITY,
    IS_INF,  // out is BOOL
    IS_NAN,  // out is BOOL
    LE,
    LEAKY_RELU,  // in > 0 ? in : alpha * in
    LOG,
    LOG10,
    LOG1P,
    LOG2,
    LT,
    MISH,
    MUL,  // in * alpha
    NE,
    POW,  // in ^ alpha
    RECIPROCAL,
    RELU,
    RELU6,
    ROUND,  // half to even
    RSQRT,
    SIGMOID,
    SIGN,
    SILU,
    SIN,
    SOFTPLUS,  // alpha is the slope, beta the threshold of the linear part
    SQRT,
    SUB,           // in - alpha
    SUB_BY_ALPHA,  // alpha - in
    TAN,
    TANH,
    TRUEDIV,               // in / alpha
    TRUEDIV_BY_ALPHA,      // alpha / in
    TRUNCATEDIV,           // trunc(in / alpha)
    TRUNCATEDIV_BY_ALPHA,  // trunc(alpha / in)
    TRUNCATEMOD,           // in - trunc(in / alpha) * alpha
  };

  Status SetMode(Mode mode);
  Status SetAlpha(double alpha);
  Status SetAlpha(int64_t alpha);
  Status SetBeta(double beta);
  Status SetBeta(int64_t beta);

  Status Run(Handle& h, Tensor& out, const Tensor& in) const;

 private:
  std::optional<Mode> mode_;
  detail::Number alpha_;
  detail::Number beta_;
};

// out = f(lhs, rhs), lhs and rhs broadcast to the shape of out. Comparisons and LOGICAL_* write
// BOOL.
class MUDNN_API Binary {
 public:
  enum class Mode {
    ADD,
    ADD_ALPHA,  // lhs + alpha * rhs
    SUB,
    SUB_ALPHA,  // lhs - alpha * rhs
    MUL,
    TRUEDIV,
    FLOORDIV,
    TRUNCATEDIV,
    FLOORMOD,
    TRUNCATEMOD,
    POW,
    MAX,  // a NaN operand gives NaN
    MIN,
    EQ,
    NE,
    LT,
    LE,
    GT,
    GE,
    LOGICAL_AND,
    LOGICAL_OR,
    LOGICAL_XOR,
    SIGMOID_BW,    // lhs = gradient, rhs = forward output
    SILU_BW,       // lhs = gradient, rhs = forward input; so do the next ones but TANH_BW
    TANH_BW,       // lhs = gradient, rhs = forward output
    THRESHOLD_BW,  // rhs > alpha ? lhs : 0
    GELU_NONE_BW,
    GELU_TANH_BW,
    LEAKY_RELU_BW,  // rhs > 0 ? lhs : alpha * lhs
  };

  Status SetMode(Mode mode);
  Status SetAlpha(double alpha);
  Status SetAlpha(int64_t alpha);

  Status Run(Handle& h, Tensor& out, const Tensor& lhs, const Tensor& rhs) const;

 private:
  std::optional<Mode> mode_;
  detail::Number alpha_;
};

// out = f(a, b, c), broadcast to the shape of out.
class MUDNN_API Ternary {
 public:
  enum class Mode {
    ADDCMUL,        // a + b * c
    ADDCMUL_ALPHA,  // a + alpha * b * c
    ADDCDIV,        // a + b / c
    ADDCDIV_ALPHA,  // a + alpha * b / c
    CLAMP,          // min(max(a, b), c)
    SELECT,         // a ? b : c; a is BOOL
  };

  Status SetMode(Mode mode);
  Status SetAlpha(double alpha);
  Status SetAlpha(int64_t alpha);

  Status Run(Handle& h, Tensor& out, const Tensor& a, const Tensor& b, const Tensor& c) const;

 private:
  std::optional<Mode> mode_;
  detail::Number alpha_;
};

// Reduces the dimensions of Dim (none given: all). The shape of out is in's with those dimensions
// either kept as 1 or left out; {1} if nothing remains.
//   ADD, PROD   out has in's type, or INT64/INT32 for an integral in, or FLOAT for HALF/BFLOAT16
//   MAX, MIN    same type
//   AND, OR     same type (BOOL, UINT8 ...), values 0 and 1
//   MEAN, NORM, VARIANCE, STD   floating point, same type or FLOAT for HALF/BFLOAT16
//   MUL         see the limits: writes zeros, use PROD
class MUDNN_API Reduce {
 public:
  enum class Mode { ADD, MEAN, MAX, MIN, MUL, PROD, AND, OR, NORM, VARIANCE, STD };

  Status SetMode(Mode mode);
  Status SetDim(int n, const int* dims);
  Status SetDim(std::initializer_list<int> dims);
  Status SetNormOrd(double order);          // default 2; may be infinite
  Status SetCorrection(double correction);  // of VARIANCE and STD; default 1

  Status Run(Handle& h, Tensor& out, const Tensor& in, const MemoryMaintainer& maintainer) const;
  // MAX and MIN: the position (INT64) of the extremum along one dimension, or in the flattened
  // operand where no dimension is given.
  Status RunIndices(Handle& h, Tensor& indices, const Tensor& in,
                    const MemoryMaintainer& maintainer) const;
  // MAX and MIN along one dimension: values and their positions.
  Status RunWithIndices(Handle& h, Tensor& out, Tensor& indices, const Tensor& in,
                        const MemoryMaintainer& maintainer) const;

 private:
  std::optional<Mode> mode_;
  std::vector<int> dims_;
  double norm_order_ = 2;
  double correction_ = 1;
};

// Running sum or product along one dimension. Floating point, INT32 and INT64 of one type, or INT32
// into INT64.
class MUDNN_API Cum {
 public:
  enum class Mode { ADD, MUL };

  Status SetMode(Mode mode);
  Status SetDim(int dim);

  Status Run(Handle& h, Tensor& out, const Tensor& in, const MemoryMaintainer& maintainer) const;

 private:
  std::optional<Mode> mode_;
  int dim_ = 0;
};

// Softmax along one dimension; operands contiguous, floating point, of one type.
class MUDNN_API Softmax {
 public:
  enum class Mode { SOFTMAX, LOGSOFTMAX, LOGSUMEXP };  // LOGSUMEXP drops or keeps (1) the dimension
  enum class Algorithm { FAST, ACCURATE };

  Status SetMode(Mode mode);
  Status SetDim(int dim);
  Status SetAlgorithm(Algorithm algorithm);

  Status Run(Handle& h, Tensor& out, const Tensor& in) const;
  // From the forward output and its gradient; SOFTMAX and LOGSOFTMAX.
  Status RunBwd(Handle& h, Tensor& grad_in, const Tensor& out, const Tensor& grad_out) const;

 private:
  std::optional<Mode> mode_;
  int dim_ = 0;
  Algorithm algorithm_ = Algorithm::FAST;
};

// Writes one value everywhere, or where mask (BOOL, broadcast to out) is true. An integral or BOOL
// operand needs the int64 overload.
class MUDNN_API Fill {
 public:
  Status SetValue(double value);
  Status SetValue(int64_t value);

  Status Run(Handle& h, Tensor& out) const;
  Status Run(Handle& h, Tensor& out, const Tensor& mask) const;

 private:
  std::optional<detail::Number> value_;
};

// Joins n operands along one dimension.
class MUDNN_API Concat {
 public:
  Status SetAxis(int axis);

  Status Run(Handle& h, Tensor& out, int n, const Tensor* in) const;

 private:
  int axis_ = 0;
};

// Copies between two layouts of one shape: the strides of the operands do the permuting.
class MUDNN_API Permute {
 public:
  Status Run(Handle& h, Tensor& out, const Tensor& in) const;
};

// Grows the last n / 2 dimensions. The info is in pairs (before, after) from the last dimension on.
class MUDNN_API Pad {
 public:
  enum class Mode { CONSTANT, REFLECT, REPLICATE };

  Status SetMode(Mode mode);
  Status SetPaddingInfo(int n, const int* padding);
  Status SetPaddingInfo(std::initializer_list<int> padding);
  Status SetValue(double value);  // of CONSTANT; default 0
  Status SetValue(int64_t value);

  Status Run(Handle& h, Tensor& out, const Tensor& in) const;

 private:
  std::optional<Mode> mode_;
  std::vector<int> padding_;
  detail::Number value_;
};

// out = first half of in along the axis * sigmoid(second half). Floating point.
class MUDNN_API Glu {
 public:
  Status SetAxis(int axis);

  Status Run(Handle& h, Tensor& out, const Tensor& in) const;

 private:
  int axis_ = 0;
};

// out (INT64) has shape {capacity, rank of in}; afterwards its NdInfo is {number found, rank}.
class MUDNN_API Nonzero {
 public:
  Status Run(Handle& h, Tensor& out, const Tensor& in, const MemoryMaintainer& maintainer) const;
};

// out has shape {capacity}; afterwards its NdInfo is {number selected}. mask is BOOL, in's shape.
class MUDNN_API MaskedSelect {
 public:
  Status Run(Handle& h, Tensor& out, const Tensor& in, const Tensor& mask,
             const MemoryMaintainer& maintainer) const;
};

// Writes the leading elements of src, in order, where mask (BOOL, inout's shape) is true.
class MUDNN_API MaskedScatter {
 public:
  Status Run(Handle& h, Tensor& inout, const Tensor& mask, const Tensor& src,
             const MemoryMaintainer& maintainer) const;
};

// GATHER replaces the axis of in by the shape of index (whole slices); GATHER_ELEMENTS picks one
// element per index, out has index's shape. Index is INT64 or INT32 and not negative.
class MUDNN_API Gather {
 public:
  enum class Mode { GATHER, GATHER_ELEMENTS };

  Status SetMode(Mode mode);
  Status SetAxis(int axis);

  Status Run(Handle& h, Tensor& out, const Tensor& index, const Tensor& in) const;
  Status Run(Handle& h, Tensor& out, const Tensor& index, const Tensor& in,
             const MemoryMaintainer& maintainer) const;

 private:
  std::optional<Mode> mode_;
  int axis_ = 0;
};

// Element by element (as GATHER_ELEMENTS) into out, which keeps what is not addressed.
class MUDNN_API Scatter {
 public:
  enum class Mode { UPDATE_ONLY, ADD };

  Status SetMode(Mode mode);

  Status Run(Handle& h, Tensor& out, const Tensor& index, const Tensor& src, int dim,
             const MemoryMaintainer& maintainer) const;

 private:
  std::optional<Mode> mode_;
};

// values and indices (INT64) have in's shape. NaN counts as the largest value.
class MUDNN_API Sort {
 public:
  Status SetDim(int dim);
  Status SetDescending(bool descending);
  Status SetStable(bool stable);

  Status Run(Handle& h, Tensor& values, Tensor& indices, const Tensor& in,
             const MemoryMaintainer& maintainer) const;

 private:
  int dim_ = 0;
  bool descending_ = false;
  bool stable_ = false;
};

// Sorts keys and takes the values along; all four have one shape.
class MUDNN_API SortByKey {
 public:
  Status SetDim(int dim);
  Status SetDescending(bool descending);
  Status SetStable(bool stable);

  Status Run(Handle& h, Tensor& key_out, Tensor& value_out, const Tensor& key_in,
             const Tensor& value_in, const MemoryMaintainer& maintainer) const;

 private:
  int dim_ = 0;
  bool descending_ = false;
  bool stable_ = false;
};

// The k largest (or smallest) along one dimension; values and indices (INT64) have k there.
class MUDNN_API TopK {
 public:
  Status SetK(int k);
  Status SetDim(int dim);
  Status SetLargest(bool largest);
  Status SetSorted(bool sorted);

  Status Run(Handle& h, Tensor& values, Tensor& indices, const Tensor& in,
             const MemoryMaintainer& maintainer) const;

 private:
  int k_ = 1;
  int dim_ = 0;
  bool largest_ = true;
  bool sorted_ = true;
};

}  // namespace musa::dnn
