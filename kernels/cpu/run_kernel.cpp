#include "tapegrad/kernels/cpu/run_kernel.h"

#include <algorithm>
#include <array>

#include "tapegrad/core/allocator.h"
#include "tapegrad/core/parallel.h"
#include "tapegrad/kernels/copy.h"
#include "tapegrad/kernels/cpu/convert.h"
#include "tapegrad/kernels/cpu/walk.h"

namespace tg::kernels {

namespace {

constexpr int64_t kChunk = 512;  // elements converted or gathered at once, in the first-level cache

bool same_layout(const View& x, const MutView& y) {
  return x.shape() == y.shape() && x.strides() == y.strides();
}

// One kernel call over whole memory will do: every operand has y's layout and the dtype that the
// kernel wants, and y has no gaps.
bool is_flat(const RunKernel& k, std::span<const View> in, const MutView& y) {
  if (k.out != y.dtype) return false;
  for (size_t i = 0; i < in.size(); ++i)
    if (in[i].dtype != k.in[i] || !same_layout(in[i], y)) return false;
  return is_dense(y.shape(), y.strides());
}

void run_flat(const RunKernel& k, std::span<const View> in, const MutView& y) {
  parallel_for(y.numel, kElementGrain, [&](int64_t begin, int64_t end) {
    const void* x[kMaxInputs];
    for (size_t i = 0; i < in.size(); ++i)
      x[i] = in[i].as<char>() + begin * int64_t(size_of(k.in[i]));
    k.run(k.formula, x, y.as<char>() + begin * int64_t(size_of(k.out)), end - begin);
  });
}

// One operand of a walk: where it lies and what is to be done before a run kernel can take it.
struct Operand {
  char* base;
  int64_t bytes;       // of an element in memory
  int64_t want_bytes;  // of an element as the kernel wants it
  ConvertRun convert;  // null if the dtypes agree
  bool flat;           // contiguous over the whole walk
  bool constant;       // one element
};

bool is_flat_in(const Walk& w, int operand, int64_t bytes) {
  int64_t step = bytes;
  for (int d = w.rank - 1; d >= 0; --d) {
    if (w.step[operand][d] != step) return false;
    step *= w.size[d];
  }
  return true;
}
bool is_constant_in(const Walk& w, int operand) {
  for (int d = 0; d < w.rank; ++d)
    if (w.step[operand][d] != 0) return false;
  return true;
}

// The general case: chunks of a walk are gathered and converted into small buffers, computed, and
// converted and scattered back. What is contiguous and of the right dtype is used where it lies.
class StridedRun {
 public:
  StridedRun(const RunKernel& k, std::span<const View> in, const MutView& y)
      : kernel_(k), count_(int(in.size()) + 1) {
    Layout layouts[kMaxOperands] = {layout_of(y)};
    for (size_t i = 0; i < in.size(); ++i) layouts[i + 1] = layout_of(in[i]);
    walk_ = plan_walk({layouts, size_t(count_)});
    add(0, y.as<char>(), y.dtype, k.out, k.out, y.dtype);
    for (int i = 1; i < count_; ++i) {
      const View& x = in[size_t(i - 1)];
      // Inputs are only read.
      add(i, const_cast<char*>(x.as<char>()), x.dtype, k.in[i - 1], x.dtype, k.in[i - 1]);
    }
    // Long runs are taken one at a time, in place where possible; short ones are joined.
    long_runs_ = walk_.inner() >= 128;
  }

  void run() const {
    parallel_for(walk_.numel, kElementGrain,
                 [this](int64_t begin, int64_t end) { range(begin, end); });
  }

 private:
  void add(int i, char* base, DType memory, DType want, DType from, DType to) {
    Operand& o = operands_[i];
    o.base = base;
    o.bytes = int64_t(size_of(memory));
    o.want_bytes = int64_t(size_of(want));
    o.convert = from == to ? nullptr : convert_run(from, to);
    o.flat = is_flat_in(walk_, i, o.bytes);
    o.constant = is_constant_in(walk_, i);
  }
  // Contiguous in the chunk that begins here.
  bool direct(int i) const {
    return operands_[i].flat || (long_runs_ && walk_.inner_step(i) == operands_[i].bytes);
  }

  void range(int64_t begin, int64_t end) const {
    alignas(64) char gathered[kChunk * 8];
    alignas(64) char wanted[kMaxOperands][kChunk * 8];
    for (int i = 1; i < count_; ++i)
      if (operands_[i].constant) load_constant(i, gathered, wanted[i], end - begin);
    bool any_buffer = false;
    for (int i = 0; i < count_; ++i) any_buffer = any_buffer || !direct(i) || operands_[i].convert;
    Position<kMaxOperands> at(walk_, begin, count_);
    for (int64_t b = begin; b < end;) {
      int64_t n = end - b;
      if (long_runs_) n = std::min(n, at.run());
      if (any_buffer) n = std::min(n, kChunk);
      Position<kMaxOperands> next = at;
      compute(at, next, n, gathered, wanted);
      at = next;
      b += n;
    }
  }

  void load_constant(int i, char* gathered, char* wanted, int64_t n) const {
    const Operand& o = operands_[i];
    n = std::min(n, kChunk);
    gather_run(o.base, 0, o.convert ? gathered : wanted, n, o.bytes);
    if (o.convert) o.convert(gathered, wanted, n);
  }

  // Elements [at, at + n) of the walk; moves `next` to the end of them.
  void compute(const Position<kMaxOperands>& at, Position<kMaxOperands>& next, int64_t n,
               char* gathered, char (*wanted)[kChunk * 8]) const {
    const void* in[kMaxInputs];
    for (int i = 1; i < count_; ++i) {
      const Operand& o = operands_[i];
      const char* source = o.base + at.offset[i];
      in[i - 1] = wanted[i];
      if (o.constant) continue;
      if (!direct(i)) {
        char* target = o.convert ? gathered : wanted[i];
        move_runs(at, n, i, [&](int64_t offset, int64_t done, int64_t part) {
          gather_run(o.base + offset, walk_.inner_step(i), target + done * o.bytes, part, o.bytes);
        });
        source = gathered;
        if (!o.convert) continue;
      }
      if (o.convert)
        o.convert(source, wanted[i], n);
      else
        in[i - 1] = source;
    }
    const Operand& y = operands_[0];
    char* target = y.base + at.offset[0];
    bool in_place = direct(0) && !y.convert;
    kernel_.run(kernel_.formula, in, in_place ? target : wanted[0], n);
    if (!in_place) {
      const char* result = wanted[0];
      if (y.convert) {
        char* to = direct(0) ? target : gathered;
        y.convert(wanted[0], to, n);
        result = to;
      }
      if (!direct(0))
        move_runs(at, n, 0, [&](int64_t offset, int64_t done, int64_t part) {
          scatter_run(result + done * y.bytes, y.base + offset, walk_.inner_step(0), part, y.bytes);
        });
    }
    for (int64_t left = n; left > 0;) {
      int64_t part = std::min(left, next.run());
      next.advance(part);
      left -= part;
    }
  }

  // move(offset of operand i, elements done, elements in this run) for the runs of [at, at + n).
  template <class Move>
  void move_runs(Position<kMaxOperands> at, int64_t n, int i, Move move) const {
    for (int64_t done = 0; done < n;) {
      int64_t part = std::min(n - done, at.run());
      move(at.offset[i], done, part);
      at.advance(part);
      done += part;
    }
  }

  const RunKernel& kernel_;
  int count_;  // operands: y and the inputs
  Walk walk_;
  Operand operands_[kMaxOperands];
  bool long_runs_;
};

// The dimension whose neighbours lie next to each other; -1 if there is none of some length.
template <class Pointer>
int unit_dim(const BasicView<Pointer>& x) {
  for (int d = x.rank() - 1; d >= 0; --d)
    if (x.stride(d) == 1 && x.size(d) >= 8) return d;
  return -1;
}

// An operand that runs along another dimension than y (a transpose) is read with one cache line
// for each element; a large one is copied tile by tile first.
bool runs_across(const View& x, const MutView& y) {
  if (y.numel < 4096 || x.shape() != y.shape()) return false;
  int along = unit_dim(y), across = unit_dim(x);
  return along >= 0 && across >= 0 && along != across && x.stride(along) > 1;
}

// Runs the kernel on a copy of input i that has y's layout.
void straighten(const RunKernel& kernel, std::span<const View> in, const MutView& y, size_t i) {
  Workspace memory(size_t(y.numel) * size_of(in[i].dtype));
  MutView straight{{memory.as<void>(), in[i].dtype, y.shape_ptr, y.stride_ptr, y.numel}};
  copy(Cpu{}, in[i], straight);
  std::array<View, kMaxInputs> others;
  std::copy(in.begin(), in.end(), others.begin());
  others[i] = straight;
  run_elementwise(kernel, {others.data(), in.size()}, y);
}

}  // namespace

void run_elementwise(const RunKernel& kernel, std::span<const View> in, MutView y) {
  if (y.numel == 0) return;
  if (is_flat(kernel, in, y)) return run_flat(kernel, in, y);
  for (size_t i = 0; i < in.size(); ++i)
    if (runs_across(in[i], y) && is_dense(y.shape(), y.strides()))
      return straighten(kernel, in, y, i);
  StridedRun(kernel, in, y).run();
}

}  // namespace tg::kernels
