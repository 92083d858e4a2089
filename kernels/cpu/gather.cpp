// Gather and scatter along one dimension. Seen from outside of that dimension every position is a
// line of its own: threads share out the lines and walk each in order, so a place that is added to
// twice sums in the order of the index.
#include <algorithm>

#include "tapegrad/core/parallel.h"
#include "tapegrad/kernels/cpu/add_to.h"
#include "tapegrad/kernels/cpu/grain.h"
#include "tapegrad/kernels/index.h"
#include "tapegrad/kernels/walk.h"

namespace tg::kernels {
namespace {

void check_range(const View& index, int64_t n, int dim) {
  Layout layouts[] = {layout_of(index)};
  Walk w = plan_walk(layouts);
  parallel_for(w.numel, kElementGrain, [&](int64_t begin, int64_t end) {
    Position<1> at(w, begin);
    for (int64_t left = end - begin; left > 0;) {
      int64_t run = std::min(left, at.run()), step = w.inner_step(0);
      const char* p = static_cast<const char*>(index.data) + at.offset[0];
      for (int64_t i = 0; i < run; ++i) {
        int64_t v = *reinterpret_cast<const int64_t*>(p + i * step);
        check<IndexError>(v >= 0 && v < n, "index", v, "is out of range for dim", dim, "of size",
                          n);
      }
      left -= run;
      if (left > 0) at.advance(run);
    }
  });
}

// visit(element of `lines`, element of `table`), where table is read or written at the index.
// `lines` has the shape of index.
template <class T, class F>
void visit_lines(const View& table, int dim, const View& index, const View& lines, F visit) {
  check_range(index, table.rank() ? table.size(dim) : 1, dim);
  if (index.numel == 0) return;
  if (index.rank() == 0)
    return visit(*static_cast<T*>(const_cast<void*>(lines.data)),
                 *static_cast<T*>(const_cast<void*>(table.data)));
  // The lines: all dimensions but dim, with the sizes of index.
  Shape shape = index.shape(), si = index.strides(), sl = lines.strides(), st = table.strides();
  for (Shape* s : {&shape, &si, &sl, &st}) s->erase(dim);
  int64_t bytes = sizeof(T);
  Layout layouts[] = {{&shape, &si, 8}, {&shape, &sl, bytes}, {&shape, &st, bytes}};
  Walk w = plan_walk(layouts);
  int64_t n = index.size(dim);
  int64_t i_step = index.stride(dim) * 8, l_step = lines.stride(dim) * bytes;
  int64_t t_step = table.stride(dim) * bytes;
  bool along = i_step <= w.inner_step(0) || w.inner() == 1;  // the line lies in memory
  int64_t grain = std::max<int64_t>(1, kElementGrain / n);
  parallel_for(w.numel, grain, [&](int64_t begin, int64_t end) {
    Position<3> at(w, begin);
    for (int64_t left = end - begin; left > 0;) {
      // A block of lines: element j of all of them, then element j + 1.
      int64_t block = along ? 1 : std::min<int64_t>({left, at.run(), 256});
      const char* pi = static_cast<const char*>(index.data) + at.offset[0];
      char* pl = static_cast<char*>(const_cast<void*>(lines.data)) + at.offset[1];
      char* pt = static_cast<char*>(const_cast<void*>(table.data)) + at.offset[2];
      for (int64_t j = 0; j < n; ++j) {
        for (int64_t b = 0; b < block; ++b) {
          int64_t v = *reinterpret_cast<const int64_t*>(pi + j * i_step + b * w.inner_step(0));
          visit(*reinterpret_cast<T*>(pl + j * l_step + b * w.inner_step(1)),
                *reinterpret_cast<T*>(pt + v * t_step + b * w.inner_step(2)));
        }
      }
      left -= block;
      if (left > 0) at.advance(block);
    }
  });
}

}  // namespace

void gather(Cpu, View x, int dim, View index, MutView y) {
  visit_bytes(y.dtype, [&]<class T>() {
    visit_lines<T>(x, dim, index, y, [](T& line, const T& place) { line = place; });
  });
}

void scatter_add(Cpu, MutView y, int dim, View index, View source) {
  visit_all(y.dtype, [&]<class T>() {
    visit_lines<T>(y, dim, index, source, [](const T& line, T& place) { add_to(place, line); });
  });
}

}  // namespace tg::kernels
