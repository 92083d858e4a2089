// Picture files: PNG, JPEG, BMP, GIF (first frame), PNM, TGA, through stb_image.
#pragma once
#include <string>

#include "tapegrad/core/tensor.h"

namespace tg::data {

struct ReadImageOptions {
  int channels = 0;               // 1 grey, 2 grey + alpha, 3 RGB, 4 RGB + alpha; 0: as stored
  bool apply_orientation = true;  // turn and mirror as the EXIF orientation of a JPEG says
  bool as_u8 = false;             // cut 16-bit files to their upper 8 bits
};
// [C,H,W]: u8; 16-bit files f32, value / 65535. FileError naming the path for what is no picture,
// cut, too large, or a JPEG of four colours (CMYK, YCCK), which is not converted.
Tensor read_image(const std::string& path, ReadImageOptions options = {});
// The same of a file's bytes; `name` is for errors.
Tensor decode_image(const std::string& bytes, const std::string& name,
                    ReadImageOptions options = {});

}  // namespace tg::data
