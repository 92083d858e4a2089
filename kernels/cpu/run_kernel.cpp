#include "tapegrad/kernels/cpu/run_kernel.h"

#include <algorithm>
#include <array>

#include "tapegrad/core/allocator.h"
#include "tapegrad/core/parallel.h"
#include "tapegrad/kernels/copy.h"
#include "tapegrad/kernels/cpu/convert.h"
#include "tapegrad/kernels/cpu/grain.h"
#include "tapegrad/kernels/cpu/run_small.h"
#include "tapegrad/kernels/walk.h"

namespace tg::kernels {

namespace {

constexpr int64_t kChunk = 512;  // elements converted or gathered at once, in the first-level cache
using Buffer = char[kChunk * 8];

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
  static constexpr int64_t kStep[kMaxInputs] = {1, 1, 1, 1};
  parallel_for(y.numel, kElementGrain, [&](int64_t begin, int64_t end) {
    const void* x[kMaxInputs];
    for (size_t i = 0; i < in.size(); ++i)
      x[i] = in[i].as<char>() + begin * int64_t(size_of(k.in[i]));
    k.run(k.formula, x, kStep, y.as<char>() + begin * int64_t(size_of(k.out)), end - begin);
  });
}

// How the elements of an operand come to the kernel.
enum class Way {
  direct,    // from where they lie (through a conversion if the dtype differs)
  constant,  // one value for the whole walk, repeated once
  repeated,  // one value for a whole run, repeated for each
  periodic,  // the same short run again and again, laid out once
  gathered   // element by element
};

struct Operand {
  char* base;
  int64_t bytes;       // of an element in memory
  ConvertRun convert;  // null if the kernel wants the dtype that memory has
  Way way;
};

bool flat_in(const Walk& w, int operand, int64_t bytes) {
  int64_t step = bytes;
  for (int d = w.rank - 1; d >= 0; --d) {
    if (w.step[operand][d] != step) return false;
    step *= w.size[d];
  }
  return true;
}
bool constant_in(const Walk& w, int operand) {
  for (int d = 0; d < w.rank; ++d)
    if (w.step[operand][d] != 0) return false;
  return true;
}

// The general case: the kernel is led over a walk in chunks; what is not contiguous or of another
// dtype goes through small buffers.
class StridedRun {
 public:
  StridedRun(const RunKernel& k, std::span<const View> in, const MutView& y)
      : kernel_(k), count_(int(in.size()) + 1) {
    Layout layouts[kMaxOperands] = {layout_of(y)};
    for (size_t i = 0; i < in.size(); ++i) layouts[i + 1] = layout_of(in[i]);
    walk_ = plan_walk({layouts, size_t(count_)});
    // Long runs are taken one at a time, in place where possible; short ones are joined.
    long_runs_ = walk_.inner() >= 128;
    add(0, y.as<char>(), y.dtype, k.out, y.dtype);
    for (int i = 1; i < count_; ++i) {
      const View& x = in[size_t(i - 1)];
      // Inputs are only read.
      add(i, const_cast<char*>(x.as<char>()), x.dtype, x.dtype, k.in[i - 1]);
    }
    // Whole periods, so that each chunk begins where the pattern does.
    if (periodic_) chunk_ = kChunk / walk_.inner() * walk_.inner();
  }

  void run() const {
    parallel_for(walk_.numel, kElementGrain,
                 [this](int64_t begin, int64_t end) { range(begin, end); });
  }

 private:
  void add(int i, char* base, DType memory, DType from, DType to) {
    int64_t bytes = int64_t(size_of(memory));
    Way way = way_of(i, bytes);
    operands_[i] = {base, bytes, from == to ? nullptr : convert_run(from, to), way};
    periodic_ = periodic_ || way == Way::periodic;
    bool buffer = way == Way::gathered || way == Way::periodic ||
                  (way == Way::direct && operands_[i].convert);
    if (buffer) chunk_ = kChunk;
  }
  Way way_of(int i, int64_t bytes) const {
    int64_t inner = walk_.inner_step(i);
    if (i > 0 && constant_in(walk_, i)) return Way::constant;
    if (long_runs_)
      return inner == bytes ? Way::direct : inner == 0 ? Way::repeated : Way::gathered;
    if (flat_in(walk_, i, bytes)) return Way::direct;
    return walk_.rank == 2 && walk_.step[i][0] == 0 ? Way::periodic : Way::gathered;
  }

  using At = Position<kMaxOperands>;

  void range(int64_t begin, int64_t end) const {
    alignas(64) Buffer buffers[kMaxOperands], spare;
    At at(walk_, begin, count_);
    for (int i = 1; i < count_; ++i) {
      if (operands_[i].way == Way::constant) repeat(i, operands_[i].base, buffers[i], spare);
      if (operands_[i].way == Way::periodic)
        gather(i, at, std::min(chunk_, end - begin), buffers[i], spare);
    }
    for (int64_t b = begin; b < end;) {
      int64_t n = std::min(end - b, chunk_);
      if (long_runs_) n = std::min(n, at.run());
      compute(at, n, buffers, spare);
      b += n;
      if (long_runs_)
        at.advance(n);
      else if (b < end)
        at = At(walk_, b, count_);
    }
  }

  void repeat(int i, const char* source, char* to, char* spare) const {
    const Operand& o = operands_[i];
    gather_run(source, 0, o.convert ? spare : to, kRepeat, o.bytes);
    if (o.convert) o.convert(spare, to, kRepeat);
  }

  // The n elements of operand i from `at` on, next to each other and converted.
  void gather(int i, At at, int64_t n, char* to, char* spare) const {
    const Operand& o = operands_[i];
    char* target = o.convert ? spare : to;
    for (int64_t done = 0; done < n;) {
      int64_t part = std::min(n - done, at.run());
      gather_run(o.base + at.offset[i], walk_.inner_step(i), target + done * o.bytes, part,
                 o.bytes);
      at.advance(part);
      done += part;
    }
    if (o.convert) o.convert(spare, to, n);
  }
  void scatter(At at, int64_t n, const char* from) const {
    const Operand& o = operands_[0];
    for (int64_t done = 0; done < n;) {
      int64_t part = std::min(n - done, at.run());
      scatter_run(from + done * o.bytes, o.base + at.offset[0], walk_.inner_step(0), part, o.bytes);
      at.advance(part);
      done += part;
    }
  }

  // Elements [at, at + n) of the walk.
  void compute(const At& at, int64_t n, Buffer* buffers, char* spare) const {
    const void* in[kMaxInputs];
    int64_t step[kMaxInputs];
    for (int i = 1; i < count_; ++i) {
      const Operand& o = operands_[i];
      const char* source = o.base + at.offset[i];
      bool single = o.way == Way::constant || o.way == Way::repeated;
      step[i - 1] = single ? 0 : 1;
      in[i - 1] = buffers[i];
      if (o.way == Way::repeated) {
        repeat(i, source, buffers[i], spare);
      } else if (o.way == Way::gathered) {
        gather(i, at, n, buffers[i], spare);
      } else if (o.way == Way::direct) {
        if (o.convert)
          o.convert(source, buffers[i], n);
        else
          in[i - 1] = source;
      }
    }
    const Operand& y = operands_[0];
    char* target = y.base + at.offset[0];
    char* place = y.way == Way::direct ? target : spare;  // in y's dtype
    kernel_.run(kernel_.formula, in, step, y.convert ? buffers[0] : place, n);
    if (y.convert) y.convert(buffers[0], place, n);
    if (place == spare) scatter(at, n, spare);
  }

  const RunKernel& kernel_;
  int count_;  // operands: y and the inputs
  Walk walk_;
  Operand operands_[kMaxOperands];
  bool long_runs_, periodic_ = false;
  int64_t chunk_ = kElementGrain;
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
  if (run_small(kernel, in, y)) return;
  for (size_t i = 0; i < in.size(); ++i)
    if (runs_across(in[i], y) && is_dense(y.shape(), y.strides()))
      return straighten(kernel, in, y, i);
  StridedRun(kernel, in, y).run();
}

}  // namespace tg::kernels
