#include "tapegrad/kernels/cpu/run_small.h"

#include <algorithm>
#include <cstring>

#include "tapegrad/kernels/cpu/convert.h"

namespace tg::kernels {

namespace {

constexpr int64_t kSmall = 64;
using Buffer = char[kSmall * 8];
static_assert(kRepeat <= kSmall);

// The elements of x, stretched to `shape`, in row-major order.
template <class T>
void gather_typed(const View& x, const Shape& shape, void* to) {
  int rank = shape.rank(), lead = rank - x.rank();
  const int64_t* size = shape.begin();
  int64_t step[kMaxRank], index[kMaxRank] = {};
  for (int d = 0; d < rank; ++d)
    step[d] = d < lead || x.size(d - lead) == 1 ? 0 : x.stride(d - lead);
  const T* from = x.as<T>();
  int64_t n = shape.numel();
  for (int64_t i = 0; i < n; ++i) {
    static_cast<T*>(to)[i] = *from;
    for (int d = rank - 1; d >= 0; --d) {
      from += step[d];
      if (++index[d] < size[d]) break;
      from -= step[d] * size[d];
      index[d] = 0;
    }
  }
}
void gather(const View& x, const Shape& shape, void* to) {
  switch (size_of(x.dtype)) {
    case 4:
      return gather_typed<uint32_t>(x, shape, to);
    case 8:
      return gather_typed<uint64_t>(x, shape, to);
    case 2:
      return gather_typed<uint16_t>(x, shape, to);
    default:
      return gather_typed<uint8_t>(x, shape, to);
  }
}

}  // namespace

bool run_small(const RunKernel& kernel, std::span<const View> in, const MutView& y) {
  if (y.numel > kSmall || !y.is_contiguous()) return false;
  alignas(64) Buffer buffers[kMaxInputs], spare;
  const void* x[kMaxInputs];
  int64_t step[kMaxInputs];
  for (size_t i = 0; i < in.size(); ++i) {
    const View& v = in[i];
    int64_t n = y.numel;
    const void* source = v.data;
    step[i] = 1;
    if (v.numel == 1) {
      n = kRepeat;
      step[i] = 0;
      gather_run(v.as<char>(), 0, spare, n, int64_t(size_of(v.dtype)));
      source = spare;
    } else if (!(v.shape() == y.shape() && v.is_contiguous())) {
      gather(v, y.shape(), spare);
      source = spare;
    }
    if (v.dtype == kernel.in[i] && source != spare) {
      x[i] = source;
      continue;
    }
    convert_run(v.dtype, kernel.in[i])(source, buffers[i], n);
    x[i] = buffers[i];
  }
  bool convert = y.dtype != kernel.out;
  kernel.run(kernel.formula, x, step, convert ? spare : y.data, y.numel);
  if (convert) convert_run(kernel.out, y.dtype)(spare, y.data, y.numel);
  return true;
}

}  // namespace tg::kernels
