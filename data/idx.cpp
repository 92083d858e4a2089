#include "tapegrad/data/idx.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <filesystem>

#include "tapegrad/autograd/ops/creation.h"
#include "tapegrad/core/io/file_kind.h"
#include "tapegrad/data/gzip_file.h"

namespace tg::data {
namespace {

DType element_type(const std::string& path, unsigned char code) {
  switch (code) {
    case 0x08:
      return u8;
    case 0x09:
      return i8;
    case 0x0b:
      return i16;
    case 0x0c:
      return i32;
    case 0x0d:
      return f32;
    case 0x0e:
      return f64;
    default:
      fail<FileError>(path, ": not an IDX file: unknown element type", int(code));
  }
}

// Big-endian file, little-endian machine.
void swap_bytes(void* data, int64_t count, size_t width) {
  auto* p = static_cast<unsigned char*>(data);
  if (width == 1) return;
  for (int64_t i = 0; i < count; ++i)
    std::reverse(p + i * int64_t(width), p + (i + 1) * int64_t(width));
}

}  // namespace

Tensor read_idx(const std::string& path) {
  static_assert(std::endian::native == std::endian::little);
  GzipFile file(path);
  unsigned char magic[4];
  check<FileError>(file.read(magic, 4) == 4, path,
                   ": cut: an IDX file starts with 4 bytes of magic number");
  check<FileError>(magic[0] == 0 && magic[1] == 0, path,
                   ": not an IDX file: it must start with two zero bytes");
  DType dtype = element_type(path, magic[2]);
  int rank = magic[3];
  check<FileError>(rank >= 1 && rank <= kMaxRank, path, ": IDX files of", rank,
                   "dimensions are not supported");
  Shape shape;
  int64_t bytes = int64_t(size_of(dtype));
  for (int d = 0; d < rank; ++d) {
    unsigned char size[4];
    check<FileError>(file.read(size, 4) == 4, path, ": cut in the sizes, which should be", rank);
    shape.push_back(int64_t(size[0]) << 24 | int64_t(size[1]) << 16 | int64_t(size[2]) << 8 |
                    size[3]);
    check<FileError>(!__builtin_mul_overflow(bytes, shape[d], &bytes), path,
                     ": the sizes in the header are absurd:", shape);
  }
  check<FileError>(bytes <= file.most_bytes_left(), path, ": cut, or a wrong header: expected",
                   bytes, "bytes of elements for shape", shape, ", found at most",
                   file.most_bytes_left());
  Tensor out = empty(shape, dtype);
  int64_t found = file.read(out.write().data, bytes);
  check<FileError>(found == bytes, path, ": cut: expected", bytes, "bytes of elements for shape",
                   shape, ", found", found);
  check<FileError>(file.at_end(), path, ": longer than its header says, which is", bytes,
                   "bytes of elements for shape", shape);
  swap_bytes(out.write().data, out.numel(), size_of(dtype));
  return out;
}

namespace {

std::string find_file(const std::string& folder, const std::string& name) {
  namespace fs = std::filesystem;
  check<FileError>(io::kind_of(folder) == io::FileKind::folder, folder,
                   ": no such folder; the data set is in Debian's package dataset-fashion-mnist");
  for (const char* ending : {".gz", ""}) {
    std::string path = (fs::path(folder) / (name + ending)).string();
    if (io::kind_of(path) != io::FileKind::none) return path;
  }
  fail<FileError>(folder, ": the file", name + ".gz", "is missing");
}

}  // namespace

ImagesAndLabels read_mnist(const std::string& folder, bool train) {
  std::string prefix = train ? "train" : "t10k";
  std::string image_path = find_file(folder, prefix + "-images-idx3-ubyte");
  std::string label_path = find_file(folder, prefix + "-labels-idx1-ubyte");
  Tensor images = read_idx(image_path), labels = read_idx(label_path);
  check<FileError>(images.dim() == 3 && images.dtype() == u8, image_path,
                   ": expected u8 images [n,rows,columns],", "found", images);
  check<FileError>(labels.dim() == 1 && labels.dtype() == u8, label_path,
                   ": expected u8 labels [n], found", labels);
  check<FileError>(images.size(0) == labels.size(0), label_path, ": holds", labels.size(0),
                   "labels, but", image_path, "holds", images.size(0), "images");
  return {images, cast(labels, i64)};
}

const std::vector<std::string>& fashion_mnist_classes() {
  static const std::vector<std::string> names = {"T-shirt/top", "Trouser",   "Pullover", "Dress",
                                                 "Coat",        "Sandal",    "Shirt",    "Sneaker",
                                                 "Bag",         "Ankle boot"};
  return names;
}

}  // namespace tg::data
