#include "tapegrad/core/io/tensor_bytes.h"

#include <bit>
#include <cstring>

namespace tg::io {

static_assert(std::endian::native == std::endian::little, "files are little-endian");

void for_each_piece(const Tensor& x, const Function<void(const char*, size_t)>& write) {
  check<DeviceError>(x.device().is_cpu(), "a tensor on", x.device(),
                     "cannot be written to a file; copy it with to(kCpuDevice)");
  if (x.numel() == 0) return;
  View v = x.read();
  size_t size = size_of(v.dtype);
  const char* data = v.as<char>();
  if (v.is_contiguous()) {
    write(data, size_t(v.numel) * size);
    return;
  }
  constexpr size_t kPiece = size_t(1) << 15;
  char piece[kPiece];
  size_t filled = 0;
  int64_t at[kMaxRank] = {}, offset = 0;  // the position of the next element, and where it lies
  for (int64_t i = 0; i < v.numel; ++i) {
    std::memcpy(piece + filled, data + offset * int64_t(size), size);
    filled += size;
    if (filled == kPiece) {
      write(piece, filled);
      filled = 0;
    }
    for (int d = v.rank() - 1; d >= 0; --d) {
      offset += v.stride(d);
      if (++at[d] < v.size(d)) break;
      offset -= v.stride(d) * v.size(d);
      at[d] = 0;
    }
  }
  write(piece, filled);
}

void normalise_bools(const Tensor& x) {
  if (x.dtype() != DType::boolean) return;
  auto* byte = x.write().as<unsigned char>();
  for (int64_t i = 0; i < x.numel(); ++i) byte[i] = byte[i] != 0;
}

}  // namespace tg::io
