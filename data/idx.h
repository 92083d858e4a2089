// The IDX format of the MNIST family (yann.lecun.com/exdb/mnist): a magic number 00 00 TT RR, RR
// big-endian 32-bit sizes, then the elements, row-major and big-endian.
#pragma once
#include <string>

#include "tapegrad/core/tensor.h"
#include "tapegrad/data/dataset.h"

namespace tg::data {

// Reads an IDX file of u8, i8, i16, i32, f32 or f64 (TT = 08, 09, 0B, 0C, 0D, 0E); gzipped files
// are unpacked on the way. FileError naming the path for anything that is cut, too long, of another
// format, or whose sizes do not fit the file; checked before memory is taken.
Tensor read_idx(const std::string& path);

// Fashion-MNIST, or MNIST itself: four IDX files in one folder, gzipped or not. Images are u8
// [n,28,28]. Images and labels must match in number.
struct ImagesAndLabels {
  Tensor images, labels;  // u8 [n,rows,columns], i64 [n]
};
ImagesAndLabels read_mnist(const std::string& folder, bool train);
// Where Debian's package dataset-fashion-mnist puts it.
inline constexpr const char* kFashionMnistFolder = "/usr/share/datasets/fashion-mnist";
// Names of the ten classes.
const std::vector<std::string>& fashion_mnist_classes();

}  // namespace tg::data
