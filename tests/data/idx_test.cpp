// IDX files: right, gzipped, wrong, and cut. Expected numbers come from the format's text.
#include <zlib.h>

#include "catch.h"
#include "tapegrad/autograd/ops.h"
#include "tapegrad/data/idx.h"
#include "temporary_folder.h"

using namespace tg;
using namespace tg::data;

namespace {

std::string bytes(std::initializer_list<int> list) {
  std::string s;
  for (int b : list) s += char(b);
  return s;
}

std::string packed(const std::string& plain) {
  std::string out(compressBound(uLong(plain.size())) + 64, '\0');
  z_stream z{};
  deflateInit2(&z, 6, Z_DEFLATED, 16 + MAX_WBITS, 8, Z_DEFAULT_STRATEGY);
  z.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(plain.data()));
  z.avail_in = uInt(plain.size());
  z.next_out = reinterpret_cast<Bytef*>(out.data());
  z.avail_out = uInt(out.size());
  deflate(&z, Z_FINISH);
  out.resize(z.total_out);
  deflateEnd(&z);
  return out;
}

struct Files {
  TemporaryFolder folder;
  std::string write(const std::string& name, const std::string& content) {
    return folder.write(name, content);
  }
};

}  // namespace

TEST_CASE("IDX elements are big-endian and typed", "[data][idx][DAT-09]") {
  Files files;
  std::string two_floats = bytes({0, 0, 0x0d, 1, 0, 0, 0, 2, 0x3f, 0x80, 0, 0, 0xc0, 0, 0, 0});
  Tensor x = read_idx(files.write("floats", two_floats));
  CHECK(x.dtype() == f32);
  CHECK(x.to_vector<double>() == std::vector<double>{1, -2});
  CHECK(read_idx(files.write("floats.gz", packed(two_floats))).to_vector<double>() ==
        std::vector<double>{1, -2});
  // With the file's name in the header, as gzip itself writes it: 1F 8B 08 08.
  std::string named = packed(two_floats);
  named[3] = 8;
  named.insert(10, "floats" + std::string(1, '\0'));
  CHECK(read_idx(files.write("floats", named)).to_vector<double>() == std::vector<double>{1, -2});
  Tensor shorts =
      read_idx(files.write("shorts", bytes({0, 0, 0x0b, 1, 0, 0, 0, 2, 0xff, 0xfe, 0x01, 0x00})));
  CHECK(shorts.to_vector<int64_t>() == std::vector<int64_t>{-2, 256});
  Tensor empty_one = read_idx(files.write("none", bytes({0, 0, 8, 2, 0, 0, 0, 0, 0, 0, 0, 5})));
  CHECK(empty_one.shape() == Shape{0, 5});
}

TEST_CASE("IDX files that are wrong or cut", "[data][idx][DAT-09]") {
  Files files;
  auto fails = [&](const std::string& content, const std::string& message) {
    std::string path = files.write("bad", content);
    CHECK_THROWS_WITH(read_idx(path), Catch::Contains(path) && Catch::Contains(message));
  };
  std::string header = bytes({0, 0, 8, 3, 0, 0, 0xea, 0x60, 0, 0, 0, 28, 0, 0, 0, 28});
  fails(header + std::string(1000, 'x'), "expected 47040000");
  fails(header + std::string(1000, 'x'), "1000");
  fails(bytes({0, 0, 8, 3}), "cut in the sizes");
  fails(header, "expected 47040000");
  fails("", "cut");
  fails(bytes({0, 0}), "cut");
  fails(bytes({0, 0, 8, 3}) + std::string(12, char(0xff)), "absurd");
  fails(bytes({0, 0, 7, 1, 0, 0, 0, 1, 5}), "unknown element type");
  fails("<html>not found</html>", "not an IDX file");
  fails(bytes({0, 0, 8, 1, 0, 0, 0, 1, 5, 6}), "longer than its header");
  std::string whole = packed(bytes({0, 0, 8, 1, 0, 0, 0x10, 0}) + std::string(4096, 'y'));
  fails(whole.substr(0, whole.size() / 2), "cut");
  std::string damaged = whole;
  damaged[whole.size() - 6] = char(damaged[whole.size() - 6] ^ 0x55);  // the checksum
  fails(damaged, "damaged");
  CHECK_THROWS_WITH(read_idx("/no/such/file"), Catch::Contains("cannot be opened"));
  CHECK_THROWS_WITH(read_idx(files.folder / ""), Catch::Contains("folder"));
}

TEST_CASE("images and labels must match", "[data][idx][DAT-09]") {
  Files files;
  files.write("train-images-idx3-ubyte",
              bytes({0, 0, 8, 3, 0, 0, 0, 2, 0, 0, 0, 1, 0, 0, 0, 1, 7, 9}));
  files.write("train-labels-idx1-ubyte", bytes({0, 0, 8, 1, 0, 0, 0, 3, 1, 2, 3}));
  CHECK_THROWS_WITH(read_mnist(files.folder / "", true),
                    Catch::Contains("3 labels") && Catch::Contains("2 images"));
  files.write("train-labels-idx1-ubyte", bytes({0, 0, 8, 1, 0, 0, 0, 2, 1, 2}));
  ImagesAndLabels read = read_mnist(files.folder / "", true);
  CHECK(read.images.shape() == Shape{2, 1, 1});
  CHECK(read.labels.to_vector<int64_t>() == std::vector<int64_t>{1, 2});
  CHECK_THROWS_WITH(read_mnist(files.folder / "", false), Catch::Contains("is missing"));
  CHECK_THROWS_WITH(read_mnist("/no/such/folder", true), Catch::Contains("no such folder"));
}
