// The operator table: one row per operator. The same rows drive the tests of values, layouts,
// dtypes, gradients, threads and errors (table_test.cpp), the references (tools/make_references.py
// walks them), the coverage page and the benchmark.
//
// To add an operator's row: add it to the function of its family in tests/ops/<family>.cpp (a new
// family: declare it below and name it in families()), then run tools/make_references.py.
#pragma once
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "tapegrad/autograd/ops.h"
#include "tapegrad/core/random.h"

namespace tg::test {

using Tensors = std::vector<Tensor>;
using Call = Function<Tensors(const Tensors&)>;

// How the elements of an input are chosen. Every value is exact in bf16, so that all dtypes see the
// same numbers and one f64 reference serves them all. Element i of input k is made from
// v = (73 i + 101 k) mod 251, which does not repeat below 251 elements:
enum class Domain {
  normal,    // (v - 125) / 64, never 0: in [-1.96, 1.96]
  positive,  // (v + 1) / 64: in (0, 3.93]
  unit,      // (v mod 125 + 1) / 128: in (0, 1)
  integer,   // low + v mod (high - low), of type i64
  boolean,   // v odd
  values,    // as listed
};
// In integer dtypes `normal`, `positive` and `unit` inputs are others, with references of their
// own: v mod 7 for the signed ones, v itself for u8, so that sums and products wrap, and v odd for
// bool.

inline const std::vector<DType> kFloats = {f32, f64, f16, bf16};
inline const std::vector<DType> kNumbers = {f32, f64, f16, bf16, i64, i32, i16, i8, u8};
inline const std::vector<DType> kEveryDType = {f32, f64, f16, bf16, i64, i32, i16, i8, u8, boolean};

struct In {
  Shape shape;
  Domain domain = Domain::normal;
  int64_t low = 0, high = 10;  // integer
  std::vector<double> listed;  // values; may hold NaN and infinities
  bool grad = true;            // float inputs: take the derivative towards it
};
inline In normal(Shape shape) { return {shape, Domain::normal, 0, 0, {}, true}; }
inline In positive(Shape shape) { return {shape, Domain::positive, 0, 0, {}, true}; }
inline In unit(Shape shape) { return {shape, Domain::unit, 0, 0, {}, true}; }
inline In integers(Shape shape, int64_t low, int64_t high) {
  return {shape, Domain::integer, low, high, {}, false};
}
inline In booleans(Shape shape) { return {shape, Domain::boolean, 0, 0, {}, false}; }
inline In values(Shape shape, std::vector<double> listed) {
  return {shape, Domain::values, 0, 0, std::move(listed), true};
}
inline In constant(In in) {  // no derivative towards it
  in.grad = false;
  return in;
}

struct Sample {
  std::vector<In> in;
  Call call;
  std::string torch;   // the same in Python, of x0, x1, ... (torch, F, np, math known)
  bool smooth = true;  // false: values that sit on a kink or are not finite; no gradcheck
};

struct Fails {  // a call that must raise, and a part of the message
  Function<Tensors()> call;
  std::string message;
};

// A shape that an operator cannot take, in a word why, and a call with it, which must raise a
// ShapeError or an IndexError with this message.
struct Refusal {
  std::string why;
  Function<Tensors()> call = {};
  std::string message = {};
};

// What a random operator draws; the same for every dtype, but for rounding.
struct Draw {
  Function<Tensor(const Tensor& x, Generator*)> from;  // in the shape and dtype of x
  double low, high;               // no value lies below `low`, or at `high` or above
  double mean, variance, fourth;  // the last two about the mean, of second and fourth order
};

// The parts a row may opt out of, with a written reason. forward_split, backward_split: that this
// pass of the large sample is cut into pieces for the threads (a view moves nothing).
enum class Part {
  gradient,
  second_derivative,
  layouts,
  threads,
  forward_split,
  backward_split,
  low_precision
};
struct OptOut {
  Part part;
  std::string reason;
};

struct Row {
  std::string name;  // of the operator, as declared in autograd/ops/
  std::vector<Sample> samples = {};
  // Of the inputs, where they are float in f32. All others must raise.
  std::vector<DType> dtypes = kFloats;
  // There is a sample whose first input is 0-d and one whose first input is empty, or a reason.
  Refusal no_0d = {}, no_empty = {};
  std::vector<int> optional = {};                  // inputs that may be undefined; any other raises
  Function<Tensors(const Tensors&)> inplace = {};  // writes x[0], returns it; same value
  std::vector<Fails> fails = {};
  std::vector<OptOut> opt_outs = {};
  // Allowed relative error in units of the dtype's epsilon, and absolute relative to the largest
  // reference value; sums and products of n terms need more than one rounding.
  double ulps = 8;
  // A sample of about three times the grain, big enough to be cut into at least three pieces for
  // the threads, forward and backward (asserted), and what it costs, for the benchmark: bytes read
  // and written, and floating-point operations. Every row has one, or opts out of `threads`.
  Function<Sample()> large = {};
  Function<double(const Tensors& in, const Tensors& out)> flops = {};
  std::optional<Draw> draw = {};  // of random operators
};
using Rows = std::vector<Row>;
inline Row with_fails(Row row, const std::vector<Fails>& more) {
  row.fails.insert(row.fails.end(), more.begin(), more.end());
  return row;
}

// The families; one function each.
Rows arithmetic_rows();
Rows comparison_rows();
Rows unary_rows();
Rows reduction_rows();
Rows matmul_rows();
Rows softmax_rows();
Rows loss_rows();
Rows conv_rows();
Rows pooling_rows();
Rows normalization_rows();
Rows batch_norm_rows();
Rows embedding_rows();
Rows attention_rows();
Rows dropout_rows();
Rows creation_rows();
Rows view_rows();
Rows joining_rows();
Rows indexing_rows();
Rows sorting_rows();
Rows random_rows();

struct Family {
  std::string name;
  Rows rows;
};
const std::vector<Family>& families();

// The input that `in` describes, number `k` of its sample; float ones in `dtype`.
Tensor make_input(const In& in, int k, DType dtype);
// Which of a sample's references a dtype is held against, by its inputs: "" (the floats), "i64."
// (the signed integers), "u8." or "bool.".
std::string reference_kind(DType dtype);
// Inputs of a sample; in f64 with requires_grad where asked.
Tensors make_inputs(const Sample& sample, DType dtype, bool requires_grad = false);
// The fixed incoming gradient of output k.
Tensor make_gradient(const Tensor& y, int k);

}  // namespace tg::test
