#include "tapegrad/data/jpeg_header.h"

#include <cstdint>

namespace tg::data {
namespace {

// Numbers in a TIFF block of either byte order; 0 outside of it.
class Tiff {
 public:
  explicit Tiff(std::string block)
      : block_(std::move(block)), little_(block_.rfind("II", 0) == 0) {}
  uint32_t number(size_t at, int bytes) const {
    if (at > block_.size() || block_.size() - at < size_t(bytes)) return 0;
    uint32_t v = 0;
    for (int i = 0; i < bytes; ++i)
      v = v << 8 | static_cast<unsigned char>(block_[at + size_t(little_ ? bytes - 1 - i : i)]);
    return v;
  }

 private:
  std::string block_;
  bool little_;
};

// The orientation in the first directory of an EXIF block.
int orientation_of(const std::string& block) {
  if (block.rfind("II", 0) != 0 && block.rfind("MM", 0) != 0) return 1;
  Tiff tiff(block);
  if (tiff.number(2, 2) != 42) return 1;
  size_t directory = tiff.number(4, 4);
  if (directory >= block.size()) return 1;
  uint32_t count = tiff.number(directory, 2);
  for (uint32_t i = 0; i < count; ++i) {
    size_t entry = directory + 2 + 12 * size_t(i);
    if (entry + 12 > block.size()) return 1;
    if (tiff.number(entry, 2) != 0x0112) continue;
    uint32_t value = tiff.number(entry + 8, 2);
    bool is_short = tiff.number(entry + 2, 2) == 3 && tiff.number(entry + 4, 4) == 1;
    return is_short && value >= 1 && value <= 8 ? int(value) : 1;
  }
  return 1;
}

}  // namespace

JpegHeader read_jpeg_header(const std::string& bytes) {
  JpegHeader header;
  auto byte = [&](size_t i) {
    return i < bytes.size() ? static_cast<unsigned char>(bytes[i]) : 0u;
  };
  if (byte(0) != 0xff || byte(1) != 0xd8) return header;
  header.is_jpeg = true;
  for (size_t at = 2; at + 4 <= bytes.size();) {
    if (byte(at) != 0xff) break;
    unsigned marker = byte(at + 1);
    if (marker == 0xff) {  // fill
      ++at;
      continue;
    }
    if (marker == 0xd9 || marker == 0xda) break;  // end of image, start of scan
    if (marker == 0x01 || (marker >= 0xd0 && marker <= 0xd7)) {
      at += 2;
      continue;
    }
    size_t length = byte(at + 2) << 8 | byte(at + 3);
    if (length < 2 || at + 2 + length > bytes.size()) break;
    std::string body = bytes.substr(at + 4, length - 2);
    bool frame =
        marker >= 0xc0 && marker <= 0xcf && marker != 0xc4 && marker != 0xc8 && marker != 0xcc;
    if (frame && body.size() >= 6) header.components = static_cast<unsigned char>(body[5]);
    if (marker == 0xe1 && body.rfind(std::string("Exif\0\0", 6), 0) == 0)
      header.orientation = orientation_of(body.substr(6));
    if (marker == 0xee && body.rfind("Adobe", 0) == 0 && body.size() >= 12)
      header.adobe_transform = static_cast<unsigned char>(body[11]);
    at += 2 + length;
  }
  return header;
}

}  // namespace tg::data
