#include "tapegrad/kernels/copy.h"

#include <algorithm>
#include <cstring>

#include "tapegrad/core/parallel.h"
#include "tapegrad/kernels/cpu/convert.h"
#include "tapegrad/kernels/cpu/grain.h"
#include "tapegrad/kernels/cpu/transpose.h"
#include "tapegrad/kernels/walk.h"

namespace tg::kernels {

namespace {

constexpr int64_t kChunk = 512;  // elements converted at once, in the first-level cache

// Elements of one size, no conversion: runs are moved as bytes.
void copy_bits(const Walk& w, const char* x, char* y, int64_t bytes) {
  bool dense_in = w.inner_step(1) == bytes, dense_out = w.inner_step(0) == bytes;
  parallel_for(w.numel, kElementGrain, [&](int64_t begin, int64_t end) {
    Position<2> at(w, begin);
    for (int64_t i = begin; i < end;) {
      int64_t n = std::min(at.run(), end - i);
      char* to = y + at.offset[0];
      const char* from = x + at.offset[1];
      if (dense_out) {
        gather_run(from, w.inner_step(1), to, n, bytes);
      } else if (dense_in) {
        scatter_run(from, to, w.inner_step(0), n, bytes);
      } else {
        char chunk[kChunk * 8];
        n = std::min(n, kChunk);
        gather_run(from, w.inner_step(1), chunk, n, bytes);
        scatter_run(chunk, to, w.inner_step(0), n, bytes);
      }
      at.advance(n);
      i += n;
    }
  });
}

void copy_converted(const Walk& w, View x, MutView y) {
  const char* from = x.as<char>();
  char* to = y.as<char>();
  ConvertRun convert = convert_run(x.dtype, y.dtype);
  int64_t in_bytes = int64_t(size_of(x.dtype)), out_bytes = int64_t(size_of(y.dtype));
  bool dense_in = w.inner_step(1) == in_bytes, dense_out = w.inner_step(0) == out_bytes;
  parallel_for(w.numel, kElementGrain, [&](int64_t begin, int64_t end) {
    alignas(64) char in[kChunk * 8], out[kChunk * 8];
    Position<2> at(w, begin);
    for (int64_t i = begin; i < end;) {
      int64_t n = std::min(at.run(), end - i);
      const char* source = from + at.offset[1];
      char* target = to + at.offset[0];
      if (!dense_in || !dense_out) n = std::min(n, kChunk);
      if (!dense_in) gather_run(source, w.inner_step(1), in, n, in_bytes);
      convert(dense_in ? source : in, dense_out ? target : out, n);
      if (!dense_out) scatter_run(out, target, w.inner_step(0), n, out_bytes);
      at.advance(n);
      i += n;
    }
  });
}

}  // namespace

void copy(Cpu, View x, MutView y) {
  if (y.numel == 0) return;
  Layout operands[] = {layout_of(y), layout_of(x)};
  Walk w = plan_walk(operands);
  if (x.dtype != y.dtype) {
    copy_converted(w, x, y);
  } else if (!copy_transposed(w, x.as<char>(), y.as<char>(), int64_t(size_of(y.dtype)))) {
    copy_bits(w, x.as<char>(), y.as<char>(), int64_t(size_of(y.dtype)));
  }
}

uint64_t bits_of(Scalar value, DType dtype) {
  uint64_t bits = 0;
  if (value.is_floating()) {
    double v = value.to_double();
    convert_run(DType::f64, dtype)(&v, &bits, 1);
  } else {
    int64_t v = value.to_int64();
    convert_run(DType::i64, dtype)(&v, &bits, 1);
  }
  return bits;
}

void fill(Cpu, MutView y, Scalar value) {
  if (y.numel == 0) return;
  const uint64_t bits = bits_of(value, y.dtype);
  const char* element = reinterpret_cast<const char*>(&bits);
  int64_t bytes = int64_t(size_of(y.dtype));
  Layout operands[] = {layout_of(y)};
  Walk w = plan_walk(operands);
  parallel_for(w.numel, kElementGrain, [&](int64_t begin, int64_t end) {
    char chunk[kChunk * 8];
    bool dense = w.inner_step(0) == bytes;
    if (!dense) gather_run(element, 0, chunk, std::min(end - begin, kChunk), bytes);
    Position<1> at(w, begin);
    for (int64_t i = begin; i < end;) {
      int64_t n = std::min(at.run(), end - i);
      char* to = y.as<char>() + at.offset[0];
      if (dense) {
        gather_run(element, 0, to, n, bytes);
      } else {
        n = std::min(n, kChunk);
        scatter_run(chunk, to, w.inner_step(0), n, bytes);
      }
      at.advance(n);
      i += n;
    }
  });
}

}  // namespace tg::kernels
