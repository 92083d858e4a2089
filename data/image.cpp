#include "tapegrad/data/image.h"

#include <algorithm>
#include <cstring>
#include <memory>

#include "tapegrad/autograd/ops/creation.h"
#include "tapegrad/autograd/ops/views.h"
#include "tapegrad/core/io/file_reader.h"
#include "tapegrad/data/jpeg_header.h"
#include "tapegrad/data/transforms.h"

// Only the declarations; the code is in stb_image.cpp.
#include <stb/stb_image.h>

namespace tg::data {
namespace {

constexpr int64_t kMostPixels = int64_t(1) << 28;

// What turns the stored picture into the one that was seen (EXIF 2.3, orientation).
Tensor orient(Tensor image, int orientation) {
  auto flip_rows = [](const Tensor& x) {
    return transpose(horizontal_flip(contiguous(transpose(x, 1, 2))), 1, 2);
  };
  if (orientation >= 5) image = transpose(image, 1, 2);
  // Behind the transposition: 2 and 6 mirror left and right, 4 and 8 top and bottom, 3 and 7 both.
  switch (orientation) {
    case 2:
    case 6:
      return horizontal_flip(contiguous(image));
    case 3:
    case 7:
      return flip_rows(horizontal_flip(contiguous(image)));
    case 4:
    case 8:
      return flip_rows(image);
    default:
      return image;
  }
}

// The decoder's own words; it has none where no decoder even looked.
std::string decoder_reason() {
  const char* reason = stbi_failure_reason();
  return reason ? reason : "unknown format";
}

// The file's bytes for stb_image, which takes what is missing at the end for zeros in most formats:
// this notices that it asked for more than there is.
struct Source {
  const std::string& bytes;
  size_t at = 0;
  bool beyond = false;

  int read(char* to, int asked) {
    constexpr size_t kRefill = 128;  // the size of its buffer, for which less will do
    size_t n = std::min(size_t(asked), bytes.size() - at);
    if (n == 0 || (n < size_t(asked) && size_t(asked) != kRefill)) beyond = true;
    std::memcpy(to, bytes.data() + at, n);
    at += n;
    return int(n);
  }
  void skip(int n) { at = size_t(std::clamp<int64_t>(int64_t(at) + n, 0, int64_t(bytes.size()))); }

  static stbi_io_callbacks callbacks() {
    stbi_io_callbacks c;
    c.read = [](void* me, char* to, int n) { return static_cast<Source*>(me)->read(to, n); };
    c.skip = [](void* me, int n) { static_cast<Source*>(me)->skip(n); };
    c.eof = [](void* me) {
      return int(static_cast<Source*>(me)->at == static_cast<Source*>(me)->bytes.size());
    };
    return c;
  }
};

struct FreePixels {
  void operator()(void* p) const { stbi_image_free(p); }
};

}  // namespace

Tensor decode_image(const std::string& bytes, const std::string& name, ReadImageOptions options) {
  check<ValueError>(options.channels >= 0 && options.channels <= 4,
                    "read_image: channels must be 0 to 4, got", options.channels);
  JpegHeader jpeg = read_jpeg_header(bytes);
  check<FileError>(jpeg.components != 4, name, ": a JPEG in",
                   jpeg.adobe_transform == 2 ? "YCCK" : "CMYK",
                   "colours is not supported; convert it to RGB");
  auto data = reinterpret_cast<const stbi_uc*>(bytes.data());
  check<FileError>(bytes.size() <= size_t(1) << 30, name, ": too large:", int64_t(bytes.size()),
                   "bytes");
  int size = int(bytes.size()), w = 0, h = 0, stored = 0;
  check<FileError>(stbi_info_from_memory(data, size, &w, &h, &stored) != 0, name,
                   ": not a picture that can be read:", decoder_reason());
  check<FileError>(w > 0 && h > 0 && int64_t(w) * h <= kMostPixels, name, ": too large:", w, "x",
                   h);
  bool wide = stbi_is_16_bit_from_memory(data, size) != 0 && !options.as_u8;
  Source source{bytes};
  stbi_io_callbacks io = Source::callbacks();
  std::unique_ptr<void, FreePixels> pixels;
  if (wide)
    pixels.reset(stbi_load_16_from_callbacks(&io, &source, &w, &h, &stored, options.channels));
  else
    pixels.reset(stbi_load_from_callbacks(&io, &source, &w, &h, &stored, options.channels));
  check<FileError>(!source.beyond, name, ": cut: it ends before its picture does");
  check<FileError>(pixels != nullptr, name, ": damaged:", decoder_reason());
  int64_t channels = options.channels ? options.channels : stored;
  Tensor image = empty({h, w, channels}, wide ? f32 : u8);  // as the decoder has it
  if (wide) {
    auto* to = image.mutable_data<float>();
    auto* from = static_cast<const uint16_t*>(pixels.get());
    for (int64_t i = 0; i < image.numel(); ++i) to[i] = float(from[i] / 65535.0);
  } else {
    std::memcpy(image.mutable_data<uint8_t>(), pixels.get(), size_t(image.numel()));
  }
  image = contiguous(permute(image, {2, 0, 1}));
  if (options.apply_orientation) image = contiguous(orient(image, jpeg.orientation));
  return image;
}

Tensor read_image(const std::string& path, ReadImageOptions options) {
  return decode_image(io::read_file(path), path, options);
}

}  // namespace tg::data
