#include "tapegrad/kernels/reduce.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "tapegrad/core/allocator.h"
#include "tapegrad/core/parallel.h"
#include "tapegrad/kernels/cpu/convert.h"
#include "tapegrad/kernels/cpu/grain.h"
#include "tapegrad/kernels/cpu/reduce_kernel.h"
#include "tapegrad/kernels/walk.h"

namespace tg::kernels {

namespace {

constexpr int64_t kColumns = 1024;   // of a tile when rows are reduced
constexpr int64_t kMostSlices = 64;  // that a long reduction is cut into
constexpr int64_t kShortRun = 32;

// The loops of a reduction: those that stay (with steps in x and y) and those that go.
struct Loops {
  Walk kept, reduced;              // operand 0 is x, operand 1 of `kept` is y
  int64_t columns = 1;             // of the innermost loop, where that one stays; else 1
  int64_t x_step = 0, y_step = 0;  // from column to column
  bool by_rows = false;            // the innermost loop stays: rows are reduced element by element
};

void append(Walk& w, const Walk& from, int d) {
  w.size[w.rank] = from.size[d];
  w.step[0][w.rank] = from.step[0][d];
  w.step[1][w.rank] = from.step[1][d];
  w.numel *= from.size[d];
  ++w.rank;
}
void close(Walk& w) {
  if (w.rank > 0) return;
  w.rank = 1;
  w.size[0] = 1;
  w.step[0][0] = w.step[1][0] = 0;
}

Loops split_loops(const View& x, const MutView& y) {
  Layout operands[] = {layout_of(x), layout_of(y)};
  Walk w = plan_walk(operands);
  Loops loops;
  for (Walk* part : {&loops.kept, &loops.reduced}) {
    part->rank = 0;
    part->numel = 1;
  }
  bool all_reduced = y.numel == 1;
  // A loop that stays may have step 0 in y only if y is one element.
  auto stays = [&](int d) { return !all_reduced && w.step[1][d] != 0; };
  int columns = -1;
  int inner = w.rank - 1;
  if (stays(inner)) {
    columns = inner;
  } else if (w.size[inner] < kShortRun) {  // many short runs: taken side by side
    for (int d = 0; d < inner; ++d)
      if (stays(d)) columns = d;
    if (columns >= 0 && w.size[columns] < kShortRun) columns = -1;
  }
  loops.by_rows = columns >= 0;
  for (int d = 0; d < w.rank; ++d) {
    if (d == columns) {
      loops.columns = w.size[d];
      loops.x_step = w.step[0][d];
      loops.y_step = w.step[1][d];
    } else {
      append(stays(d) ? loops.kept : loops.reduced, w, d);
    }
  }
  close(loops.kept);
  close(loops.reduced);
  return loops;
}

class Reduction {
 public:
  Reduction(Reduce how, const View& x, const MutView& y, double divisor)
      : kernel_(reduce_kernel(how, x.dtype)), x_(x), y_(y), divisor_(divisor) {
    loops_ = split_loops(x, y);
    bytes_ = int64_t(size_of(x.dtype));
    if (x.dtype != kernel_.in) convert_ = convert_run(x.dtype, kernel_.in);
    tiles_ = (loops_.columns + kColumns - 1) / kColumns;
    groups_ = loops_.kept.numel * tiles_;
    // Long reductions to few results are cut into slices, so that several threads find work.
    int64_t depth = loops_.reduced.numel, width = std::min(loops_.columns, kColumns);
    int64_t least = std::max<int64_t>(1, kElementGrain / width);
    slice_ = depth;
    if (groups_ < kMostSlices && depth >= 2 * least)
      slice_ = std::max(least, (depth + kMostSlices - 1) / kMostSlices);
    slices_ = depth == 0 ? 1 : (depth + slice_ - 1) / slice_;
    work_ = std::min(slice_, depth) * width;
    const Walk& r = loops_.reduced;
    bool gapless = r.rank == 1 && r.step[0][0] == loops_.columns * bytes_ &&
                   loops_.x_step == bytes_ && !convert_;
    if (loops_.by_rows && gapless && loops_.columns <= kColumns / 4)
      fold_ = kColumns / loops_.columns;
  }

  void run() {
    Workspace partial(slices_ > 1 ? size_t(groups_ * slices_ * kColumns) * 8 : 1);
    char* totals = partial.as<char>();
    int64_t grain = std::max<int64_t>(1, kElementGrain / std::max<int64_t>(work_, 1));
    parallel_for(groups_ * slices_, grain, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        alignas(64) char own[kColumns * 8];
        char* wide = slices_ > 1 ? totals + i * kColumns * 8 : own;
        reduce_slice(i / slices_, i % slices_, wide);
        if (slices_ == 1) finish(i, wide);
      }
    });
    if (slices_ == 1) return;
    for (int64_t g = 0; g < groups_; ++g) {
      char* wide = totals + g * slices_ * kColumns * 8;
      for (int64_t s = 1; s < slices_; ++s)
        kernel_.combine(wide + s * kColumns * 8, wide, columns_of(g));
      finish(g, wide);
    }
  }

 private:
  int64_t first_column(int64_t group) const { return group % tiles_ * kColumns; }
  int64_t columns_of(int64_t group) const {
    return std::min(kColumns, loops_.columns - first_column(group));
  }

  // Total of slice s of a group, into wide[columns].
  void reduce_slice(int64_t group, int64_t s, char* wide) const {
    Position<2> kept(loops_.kept, group / tiles_);
    const char* x = x_.as<char>() + kept.offset[0] + first_column(group) * loops_.x_step;
    int64_t n = columns_of(group), begin = s * slice_;
    int64_t end = std::min(begin + slice_, loops_.reduced.numel);
    kernel_.start_wide(wide, n);
    if (begin >= end) return;
    if (loops_.by_rows)
      reduce_rows(x, begin, end, n, wide);
    else
      reduce_runs(x, begin, end, wide);
  }

  void reduce_runs(const char* x, int64_t begin, int64_t end, char* wide) const {
    alignas(64) char gathered[kReduceBlock * 8], converted[kReduceBlock * 8];
    int64_t step = loops_.reduced.inner_step(0);
    Position<1> at(loops_.reduced, begin);
    for (int64_t i = begin; i < end;) {
      int64_t n = std::min({at.run(), end - i, kReduceBlock});
      kernel_.run(contiguous(x + at.offset[0], step, n, gathered, converted), n, wide);
      at.advance(n);
      i += n;
    }
  }

  void reduce_rows(const char* x, int64_t begin, int64_t end, int64_t columns, char* wide) const {
    alignas(64) char narrow[kColumns * 8];
    Position<1> at(loops_.reduced, begin);
    int64_t i = begin;
    if (fold_ > 1) i = reduce_folded(x, at, begin, end, columns, wide);
    while (i < end) {
      int64_t rows = std::min(end - i, kReduceRows);
      kernel_.start_rows(narrow, columns);
      add_rows(x, at, rows, columns, narrow);
      kernel_.merge(narrow, wide, columns);
      i += rows;
    }
  }

  // Short rows that follow each other without a gap are taken `fold_` at a time as one long row,
  // and what stands below each other is joined at the end. Returns the first row that is left.
  int64_t reduce_folded(const char* x, Position<1>& at, int64_t begin, int64_t end, int64_t columns,
                        char* wide) const {
    alignas(64) char narrow[kColumns * 8], folded[kColumns * 8];
    int64_t width = fold_ * columns, i = begin;
    kernel_.start_wide(folded, width);
    while (i + fold_ <= end) {
      int64_t rows = std::min((end - i) / fold_, kReduceRows);
      kernel_.start_rows(narrow, width);
      for (int64_t r = 0; r < rows; ++r) {
        const void* row = x + at.offset[0];
        kernel_.rows(&row, 1, narrow, width);
        at.advance(fold_);
      }
      kernel_.merge(narrow, folded, width);
      i += rows * fold_;
    }
    for (int64_t k = 0; k < fold_; ++k) kernel_.combine(folded + k * columns * 8, wide, columns);
    return i;
  }

  void add_rows(const char* x, Position<1>& at, int64_t rows, int64_t columns, char* narrow) const {
    alignas(64) char gathered[kColumns * 8], converted[kColumns * 8];
    bool plain = !convert_ && (loops_.x_step == bytes_ || columns == 1);
    for (int64_t r = 0; r < rows;) {
      const void* row[kRowsAtOnce];
      int count = plain && r + kRowsAtOnce <= rows ? kRowsAtOnce : 1;
      for (int k = 0; k < count; ++k) {
        row[k] = contiguous(x + at.offset[0], loops_.x_step, columns, gathered, converted);
        at.advance(1);
      }
      kernel_.rows(row, count, narrow, columns);
      r += count;
    }
  }

  // n elements as the kernel reads them: where they lie, or in one of the buffers.
  const void* contiguous(const char* x, int64_t step, int64_t n, char* gathered,
                         char* converted) const {
    if (step != bytes_ && n > 1) {
      gather_run(x, step, gathered, n, bytes_);
      x = gathered;
    }
    if (!convert_) return x;
    convert_(x, converted, n);
    return converted;
  }

  void finish(int64_t group, char* wide) const {
    int64_t n = columns_of(group);
    Position<2> kept(loops_.kept, group / tiles_);
    char* y = y_.as<char>() + kept.offset[1] + first_column(group) * loops_.y_step;
    if (divisor_ != 1 && kernel_.wide == DType::f64)
      for (int64_t i = 0; i < n; ++i) reinterpret_cast<double*>(wide)[i] /= divisor_;
    alignas(64) char result[kColumns * 8];
    convert_run(kernel_.wide, y_.dtype)(wide, result, n);
    scatter_run(result, y, loops_.y_step, n, int64_t(size_of(y_.dtype)));
  }

  ReduceKernel kernel_;
  const View& x_;
  const MutView& y_;
  double divisor_;
  Loops loops_;
  ConvertRun convert_ = nullptr;
  int64_t bytes_, tiles_, groups_;
  int64_t slice_, slices_;  // elements (or rows) of a slice; how many slices
  int64_t work_;            // elements of one slice of one group
  int64_t fold_ = 1;        // rows that are taken as one
};

}  // namespace

void reduce(Cpu, Reduce how, View x, MutView y, double divisor) {
  if (y.numel == 0) return;
  Reduction(how, x, y, divisor).run();
}

}  // namespace tg::kernels
