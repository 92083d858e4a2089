#include "tapegrad/kernels/mask.h"

#include <algorithm>
#include <vector>

#include "tapegrad/core/parallel.h"
#include "tapegrad/kernels/copy.h"
#include "tapegrad/kernels/cpu/grain.h"
#include "tapegrad/kernels/walk.h"

namespace tg::kernels {
namespace {

template <class T>
bool is_set(T v) {
  if constexpr (std::is_same_v<T, Half> || std::is_same_v<T, BFloat16>)
    return (v.bits & 0x7fff) != 0;
  else
    return v != T(0);
}

template <class T>
int64_t count_range(const T* x, int64_t begin, int64_t end) {
  int64_t n = 0;
  for (int64_t i = begin; i < end; ++i) n += is_set(x[i]);
  return n;
}

template <class T>
void fill_masked(const View& x, const View& mask, T value, const MutView& y) {
  Layout layouts[] = {layout_of(y), layout_of(x), layout_of(mask)};
  Walk w = plan_walk(layouts);
  int64_t sy = w.inner_step(0), sx = w.inner_step(1), sm = w.inner_step(2);
  bool packed = sy == int64_t(sizeof(T)) && sx == int64_t(sizeof(T)) && sm == 1;
  parallel_for(w.numel, kElementGrain, [&](int64_t begin, int64_t end) {
    Position<3> at(w, begin);
    for (int64_t left = end - begin; left > 0;) {
      int64_t n = std::min(left, at.run());
      char* py = static_cast<char*>(y.data) + at.offset[0];
      const char* px = static_cast<const char*>(x.data) + at.offset[1];
      const char* pm = static_cast<const char*>(mask.data) + at.offset[2];
      if (packed) {
        T* to = reinterpret_cast<T*>(py);
        const T* from = reinterpret_cast<const T*>(px);
        for (int64_t i = 0; i < n; ++i) {
          T kept = from[i];
          to[i] = pm[i] ? value : kept;
        }
      } else {
        for (int64_t i = 0; i < n; ++i)
          *reinterpret_cast<T*>(py + i * sy) =
              pm[i * sm] ? value : *reinterpret_cast<const T*>(px + i * sx);
      }
      left -= n;
      if (left > 0) at.advance(n);
    }
  });
}

}  // namespace

void masked_fill(Cpu, View x, View mask, Scalar value, MutView y) {
  if (y.numel == 0) return;
  const uint64_t bits = bits_of(value, y.dtype);
  visit_bytes(y.dtype, [&]<class T>() { fill_masked<T>(x, mask, T(bits), y); });
}

int64_t count_nonzero(Cpu, View x) {
  int64_t total = 0;
  visit_all(x.dtype, [&]<class T>() {
    const T* data = x.as<T>();
    total = parallel_reduce(
        x.numel, kElementGrain, int64_t(0),
        [&](int64_t begin, int64_t end) { return count_range(data, begin, end); },
        [](int64_t a, int64_t b) { return a + b; });
  });
  return total;
}

void nonzero(Cpu, View x, MutView y) {
  if (y.numel == 0) return;
  int rank = x.rank();
  int64_t blocks = (x.numel + kElementGrain - 1) / kElementGrain;
  std::vector<int64_t> starts(size_t(blocks) + 1, 0);
  visit_all(x.dtype, [&]<class T>() {
    const T* data = x.as<T>();
    parallel_for(x.numel, kElementGrain, [&](int64_t begin, int64_t end) {
      starts[size_t(begin / kElementGrain) + 1] = count_range(data, begin, end);
    });
    for (size_t i = 1; i < starts.size(); ++i) starts[i] += starts[i - 1];
    parallel_for(x.numel, kElementGrain, [&](int64_t begin, int64_t end) {
      int64_t* out = y.as<int64_t>() + starts[size_t(begin / kElementGrain)] * rank;
      for (int64_t i = begin; i < end; ++i) {
        if (!is_set(data[i])) continue;
        int64_t rest = i;
        for (int d = rank - 1; d >= 0; --d) {
          out[d] = rest % x.size(d);
          rest /= x.size(d);
        }
        out += rank;
      }
    });
  });
}

void triangle(Cpu, View x, MutView y, int64_t diagonal, bool upper) {
  if (y.numel == 0) return;
  int rank = y.rank();
  int64_t rows = y.size(rank - 2), columns = y.size(rank - 1);
  int64_t sx = x.stride(rank - 1), sy = y.stride(rank - 1);
  // One row after the other, numbered over the leading dimensions too.
  visit_bytes(y.dtype, [&]<class T>() {
    int64_t grain = std::max<int64_t>(1, kElementGrain / columns);
    parallel_for(y.numel / columns, grain, [&](int64_t begin, int64_t end) {
      for (int64_t at = begin; at < end; ++at) {
        const T* from = x.as<T>();
        T* to = y.as<T>();
        int64_t rest = at;
        for (int d = rank - 2; d >= 0; --d) {
          from += rest % y.size(d) * x.stride(d);
          to += rest % y.size(d) * y.stride(d);
          rest /= y.size(d);
        }
        // Columns [0, cut) and [cut, columns): one side is kept.
        int64_t row = at % rows;
        int64_t cut = std::clamp(diagonal, -rows - 1, columns) + row + (upper ? 0 : 1);
        cut = std::clamp<int64_t>(cut, 0, columns);
        int64_t keep = upper ? cut : 0, keep_end = upper ? columns : cut;
        for (int64_t c = 0; c < keep; ++c) to[c * sy] = T(0);
        for (int64_t c = keep; c < keep_end; ++c) to[c * sy] = from[c * sx];
        for (int64_t c = keep_end; c < columns; ++c) to[c * sy] = T(0);
      }
    });
  });
}

}  // namespace tg::kernels
