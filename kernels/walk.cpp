#include "tapegrad/kernels/walk.h"

namespace tg::kernels {

namespace {

// Products of sizes and steps leave 63 bits only where there are no elements (size_product).

// The loop inside `outer` and `outer` itself are one for every operand.
bool evenly_spaced(const Walk& w, int operands, int outer, int inner) {
  for (int k = 0; k < operands; ++k)
    if (w.step[k][outer] != size_product(w.step[k][inner], w.size[inner])) return false;
  return true;
}

}  // namespace

Walk plan_walk(std::span<const Layout> operands) {
  Walk w;
  const int64_t* shape = operands[0].shape->begin();
  const int64_t* strides = operands[0].strides->begin();
  int count = int(operands.size()), rank = operands[0].shape->rank();
  w.numel = operands[0].shape->numel();
  int order[kMaxRank];  // by falling stride of operand 0; equal strides keep their order
  int n = 0;
  for (int d = 0; d < rank; ++d) {
    if (shape[d] == 1) continue;
    int at = n++;
    for (; at > 0 && strides[order[at - 1]] < strides[d]; --at) order[at] = order[at - 1];
    order[at] = d;
  }
  int last = -1;
  for (int i = 0; i < n; ++i) {
    int next = last + 1, d = order[i];
    w.size[next] = shape[d];
    for (int k = 0; k < count; ++k) {
      const Layout& o = operands[size_t(k)];
      int own = d - (rank - o.shape->rank());
      bool stretched = own < 0 || o.shape->begin()[own] == 1;
      w.step[k][next] = stretched ? 0 : size_product(o.strides->begin()[own], o.bytes);
    }
    if (last >= 0 && evenly_spaced(w, count, last, next)) {
      w.size[last] = size_product(w.size[last], w.size[next]);
      for (int k = 0; k < count; ++k) w.step[k][last] = w.step[k][next];
    } else {
      last = next;
    }
  }
  w.rank = last + 1;
  if (w.rank == 0) {
    w.rank = 1;
    w.size[0] = 1;
    for (int k = 0; k < count; ++k) w.step[k][0] = operands[size_t(k)].bytes;
  }
  return w;
}

}  // namespace tg::kernels
