#include "tapegrad/kernels/accumulate.h"

#include <algorithm>

#include "tapegrad/core/parallel.h"
#include "tapegrad/kernels/cpu/add_to.h"

namespace tg::kernels {
namespace {

template <class T>
void add_block(const T* x, T* y, const View& from, const MutView& to, int dim) {
  int64_t n = to.size(dim), sx = from.stride(dim), sy = to.stride(dim);
  if (dim + 1 == to.rank()) {
    for (int64_t i = 0; i < n; ++i) add_to(y[i * sy], x[i * sx]);
    return;
  }
  for (int64_t i = 0; i < n; ++i) add_block(x + i * sx, y + i * sy, from, to, dim + 1);
}

// The leading dimension can be shared out if no place is seen from two of its indices.
bool leads_apart(const MutView& y) {
  int64_t reach = 0;
  for (int i = 1; i < y.rank(); ++i) reach += (y.size(i) - 1) * y.stride(i);
  return y.stride(0) > reach;
}

}  // namespace

void accumulate(Cpu, View x, MutView y) {
  if (y.numel == 0) return;
  visit_all(y.dtype, [&]<class T>() {
    const T* from = x.as<T>();
    T* to = y.as<T>();
    if (y.rank() == 0) return add_to(*to, *from);
    int64_t n = y.size(0), sx = x.stride(0), sy = y.stride(0);
    int64_t grain = leads_apart(y) ? std::max<int64_t>(1, 32768 * n / y.numel) : n;
    parallel_for(n, grain, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        if (y.rank() == 1)
          add_to(to[i * sy], from[i * sx]);
        else
          add_block(from + i * sx, to + i * sy, x, y, 1);
      }
    });
  });
}

}  // namespace tg::kernels
