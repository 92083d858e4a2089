// What the pixels of a JPEG do not say: the colour space and which way is up.
#pragma once
#include <string>

namespace tg::data {

struct JpegHeader {
  bool is_jpeg = false;
  int components = 0;        // 1 grey, 3 colour, 4 CMYK or YCCK; 0 if no frame was found
  int adobe_transform = -1;  // of the Adobe marker: 0 CMYK, 2 YCCK; -1 without
  int orientation = 1;       // EXIF 2.3, tag 0x0112: 1 to 8; anything broken counts as 1
};
// Reads the markers up to the first scan; never outside of `bytes`.
JpegHeader read_jpeg_header(const std::string& bytes);

}  // namespace tg::data
