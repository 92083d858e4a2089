#include "tapegrad/core/io/npy.h"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <optional>

#include "tapegrad/core/io/atomic_file.h"
#include "tapegrad/core/io/file_reader.h"
#include "tapegrad/core/io/tensor_bytes.h"

namespace tg {
namespace {

constexpr std::string_view kMagic = "\x93NUMPY";
constexpr int64_t kLongestHeader = int64_t(1) << 20;

struct NpyName {
  DType dtype;
  const char* name;  // without the byte order
};
constexpr NpyName kNames[] = {{DType::f32, "f4"}, {DType::f64, "f8"}, {DType::f16, "f2"},
                              {DType::i8, "i1"},  {DType::u8, "u1"},  {DType::i16, "i2"},
                              {DType::i32, "i4"}, {DType::i64, "i8"}, {DType::boolean, "b1"}};

struct Header {
  DType dtype = DType::f32;
  bool big_endian = false;
  bool fortran_order = false;
  Shape shape;
};

// Reads the header, a dictionary as Python writes it:
// {'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }
class HeaderParser {
 public:
  HeaderParser(std::string_view text, const std::string& path) : text_(text), path_(path) {}

  Header parse() {
    std::optional<std::string> descr;
    std::optional<bool> fortran;
    std::optional<Shape> shape;
    expect('{');
    while (!accept('}')) {
      std::string key = quoted();
      expect(':');
      if (key == "descr" && !descr)
        descr = dtype_text();
      else if (key == "fortran_order" && !fortran)
        fortran = boolean();
      else if (key == "shape" && !shape)
        shape = sizes();
      else
        wrong("unexpected key '" + key + "'");
      if (!accept(',')) {
        expect('}');
        break;
      }
    }
    skip_space();
    if (at_ != text_.size()) wrong("text after the dictionary");
    if (!descr || !fortran || !shape) wrong("descr, fortran_order or shape is missing");
    Header h;
    h.fortran_order = *fortran;
    h.shape = *shape;
    set_dtype(h, *descr);
    return h;
  }

 private:
  [[noreturn]] void wrong(const std::string& what) const {
    fail<FileError>(path_ + ": bad .npy header: " + what);
  }
  void skip_space() {
    while (at_ < text_.size() && std::strchr(" \t\n\r", text_[at_])) ++at_;
  }
  bool accept(char c) {
    skip_space();
    if (at_ >= text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }
  void expect(char c) {
    if (!accept(c)) wrong(std::string("expected '") + c + "' at byte " + std::to_string(at_));
  }
  std::string quoted() {
    skip_space();
    char quote = at_ < text_.size() ? text_[at_] : '\0';
    if (quote != '\'' && quote != '"') wrong("expected a string");
    size_t end = text_.find(quote, at_ + 1);
    if (end == std::string_view::npos) wrong("a string does not end");
    std::string s(text_.substr(at_ + 1, end - at_ - 1));
    at_ = end + 1;
    return s;
  }
  std::string dtype_text() {
    skip_space();
    if (at_ < text_.size() && text_[at_] == '[')
      fail<FileError>(path_ + ": structured .npy arrays are not supported");
    return quoted();
  }
  bool boolean() {
    skip_space();
    for (bool value : {false, true}) {
      std::string_view word = value ? "True" : "False";
      if (text_.substr(at_, word.size()) == word) {
        at_ += word.size();
        return value;
      }
    }
    wrong("fortran_order is neither True nor False");
  }
  Shape sizes() {
    Shape shape;
    expect('(');
    while (!accept(')')) {
      skip_space();
      int64_t size = -1;
      auto [end, error] = std::from_chars(text_.data() + at_, text_.data() + text_.size(), size);
      if (error != std::errc() || size < 0) wrong("shape has something that is not a size");
      at_ = size_t(end - text_.data());
      if (at_ < text_.size() && text_[at_] == 'L') ++at_;  // a long of Python 2
      if (shape.rank() == kMaxRank)
        fail<FileError>(path_ + ": more than", kMaxRank, "dimensions are not supported");
      shape.push_back(size);
      if (!accept(',')) {
        expect(')');
        break;
      }
    }
    return shape;
  }
  void set_dtype(Header& h, const std::string& descr) const {
    bool known = descr.size() == 3 && std::strchr("<>|=", descr[0]);
    if (known)
      for (const NpyName& n : kNames)
        if (descr.compare(1, 2, n.name) == 0) {
          h.dtype = n.dtype;
          h.big_endian = descr[0] == '>';
          return;
        }
    fail<FileError>(path_ + ": dtype '" + descr +
                    "' is not supported; convert it in NumPy, e.g. "
                    "with astype('f4')");
  }

  std::string_view text_;
  size_t at_ = 0;
  const std::string& path_;
};

// Bytes of the elements; checked before anything is allocated.
int64_t data_bytes(const Header& h, const std::string& path) {
  int64_t bytes = int64_t(size_of(h.dtype));
  bool fits = true;
  for (int64_t size : h.shape) fits = !__builtin_mul_overflow(bytes, size, &bytes) && fits;
  for (int64_t size : h.shape)
    if (size == 0) return 0;
  check<FileError>(fits, path + ": bad .npy header: shape", h.shape, "is too large");
  return bytes;
}

void swap_bytes(const Tensor& x) {
  size_t size = size_of(x.dtype());
  auto* byte = x.write().as<char>();
  for (int64_t i = 0; i < x.numel(); ++i, byte += size) std::reverse(byte, byte + size);
}

}  // namespace

Tensor load_npy(const std::string& path) {
  io::FileReader file(path);
  unsigned char start[12] = {};
  check<FileError>(file.size() >= 10, path + " is not a .npy file: only", file.size(), "bytes");
  file.read(start, size_t(std::min<int64_t>(file.size(), 12)), 0);
  check<FileError>(std::memcmp(start, kMagic.data(), kMagic.size()) == 0,
                   path + " is not a .npy file: it does not begin with \\x93NUMPY");
  int version = start[6];
  check<FileError>(version >= 1 && version <= 3, path + ": .npy version", version,
                   "is not known; 1 to 3 are");
  int64_t at = version == 1 ? 10 : 12;
  int64_t length = start[8] | int64_t(start[9]) << 8;
  if (version > 1) length |= int64_t(start[10]) << 16 | int64_t(start[11]) << 24;
  check<FileError>(length <= kLongestHeader && at + length <= file.size(),
                   path + ": bad .npy header: its length is", length, "in a file of", file.size(),
                   "bytes");
  std::string text(size_t(length), '\0');
  file.read(text.data(), text.size(), at);
  at += length;
  Header h = HeaderParser(text, path).parse();
  int64_t bytes = data_bytes(h, path);
  check<FileError>(file.size() - at == bytes, path + ":", to_text(h.dtype) + to_text(h.shape),
                   "takes", bytes, "bytes, but the file has", file.size() - at);

  Shape strides = contiguous_strides(h.shape);
  if (h.fortran_order) {
    int64_t step = 1;
    for (int d = 0; d < h.shape.rank(); ++d) {
      strides[d] = step;
      step *= std::max<int64_t>(h.shape[d], 1);
    }
  }
  Tensor x = empty_strided(h.shape, strides, h.dtype);
  if (bytes > 0) file.read(x.write().data, size_t(bytes), at);
  if (h.big_endian) swap_bytes(x);
  io::normalise_bools(x);
  return x;
}

void save_npy(const std::string& path, const Tensor& x) {
  const char* name = nullptr;
  for (const NpyName& n : kNames)
    if (n.dtype == x.dtype()) name = n.name;
  check<DTypeError>(name != nullptr, "save_npy: NumPy has no", x.dtype(),
                    "; convert the tensor to f32");
  std::string header = std::string("{'descr': '") + (size_of(x.dtype()) == 1 ? "|" : "<") + name +
                       "', 'fortran_order': False, 'shape': (";
  for (int d = 0; d < int(x.dim()); ++d) header += (d ? ", " : "") + std::to_string(x.shape()[d]);
  header += x.dim() == 1 ? ",), }" : "), }";
  // The elements begin at a multiple of 64 bytes.
  size_t unpadded = 10 + header.size() + 1;
  header += std::string((64 - unpadded % 64) % 64, ' ') + "\n";

  io::AtomicFile file(path);
  file.write(kMagic);
  const char version_and_length[4] = {1, 0, char(header.size() & 0xff), char(header.size() >> 8)};
  file.write(version_and_length, 4);
  file.write(header);
  io::for_each_piece(x, [&](const char* data, size_t bytes) { file.write(data, bytes); });
  file.commit();
}

}  // namespace tg
