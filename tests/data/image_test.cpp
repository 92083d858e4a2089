// Picture files and what is done to them. The files were made by tools/make_test_images.py.
#include <fstream>

#include "catch.h"
#include "tapegrad/autograd/ops.h"
#include "tapegrad/core/random.h"
#include "tapegrad/data/image.h"
#include "tapegrad/data/transforms.h"
#include "temporary_folder.h"
#include "test_folder.h"

using namespace tg;
using namespace tg::data;

namespace {
std::string file(const std::string& name) { return test::test_folder() + "/data/files/" + name; }
std::string bytes_of(const std::string& name) {
  std::ifstream in(file(name), std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}
std::vector<double> values(const Tensor& x) { return x.to_vector<double>(); }
using V = std::vector<double>;
ReadImageOptions channels(int n) {
  ReadImageOptions o;
  o.channels = n;
  return o;
}
}  // namespace

TEST_CASE("16-bit pictures keep their depth", "[data][image][IMG-03]") {
  Tensor x = read_image(file("grey16.png"));
  CHECK(x.dtype() == f32);
  CHECK(x.shape() == Shape{1, 1, 5});
  const V expected = {0, 0.00389105, 0.00390631, 0.50000763, 1};
  for (int i = 0; i < 5; ++i)
    CHECK(values(x)[size_t(i)] == Approx(expected[size_t(i)]).epsilon(1e-5));
  ReadImageOptions cut;
  cut.as_u8 = true;
  Tensor bytes = read_image(file("grey16.png"), cut);
  CHECK(bytes.dtype() == u8);
  CHECK(values(bytes) == V{0, 0, 1, 128, 255});
}

TEST_CASE("low depths, alpha and palettes", "[data][image][IMG-03]") {
  for (const char* name : {"grey1.png", "grey2.png", "grey4.png"})
    CHECK(values(read_image(file(name))) == V{0, 255});
  CHECK(values(read_image(file("grey_alpha.png"))) == V{200, 128});
  CHECK(values(read_image(file("grey_alpha.png"), channels(1))) == V{200});
  CHECK(values(read_image(file("grey_alpha.png"), channels(3))) == V{200, 200, 200});
  CHECK(values(read_image(file("grey_alpha.png"), channels(4))) == V{200, 200, 200, 128});
  Tensor palette = read_image(file("palette.png"));
  CHECK(palette.shape() == Shape{4, 1, 2});
  CHECK(values(palette) == V{10, 40, 20, 50, 30, 60, 0, 255});
  CHECK(values(read_image(file("rgb.png"))) == V{1, 4, 2, 5, 3, 6});  // channels first
}

TEST_CASE("JPEGs lie as their EXIF orientation says", "[data][image][IMG-01]") {
  // Stored 16 wide and 8 high, left half black, right half white.
  for (const char* order : {"II", "MM"})
    for (int orientation : {1, 2, 3, 6, 8}) {
      INFO(order << orientation);
      Tensor x = read_image(
          file("exif_" + std::string(order) + "_" + std::to_string(orientation) + ".jpg"));
      bool upright = orientation >= 5;
      REQUIRE(x.shape() == (upright ? Shape{1, 16, 8} : Shape{1, 8, 16}));
      double first = x[0][0][0].item(), last = x[0][x.size(1) - 1][x.size(2) - 1].item();
      bool black_first = orientation == 1 || orientation == 6;
      CHECK(first == Approx(black_first ? 0 : 255).margin(8));
      CHECK(last == Approx(black_first ? 255 : 0).margin(8));
    }
  ReadImageOptions as_stored;
  as_stored.apply_orientation = false;
  CHECK(read_image(file("exif_II_6.jpg"), as_stored).shape() == Shape{1, 8, 16});
  CHECK(read_image(file("exif_beyond.jpg")).shape() == Shape{1, 8, 16});  // broken: counts as 1
  // The EXIF segment (after the start of the image: 2 bytes of mark, 2 of length) left out, and cut
  // short at every length.
  const std::string whole = bytes_of("exif_II_6.jpg");
  const size_t length =
      size_t(static_cast<unsigned char>(whole[4])) << 8 | static_cast<unsigned char>(whole[5]);
  REQUIRE(whole.substr(6, 4) == "Exif");
  const std::string rest = whole.substr(4 + length);
  CHECK(decode_image(whole.substr(0, 2) + rest, "none.jpg").shape() == Shape{1, 8, 16});
  for (size_t n = 2; n < length; ++n) {
    std::string cut = whole.substr(0, 4 + n) + rest;
    cut[4] = 0;
    cut[5] = char(n);
    // The orientation is the last entry but four bytes (where the next directory lies).
    CHECK(decode_image(cut, "cut.jpg").shape() ==
          (n >= length - 4 ? Shape{1, 16, 8} : Shape{1, 8, 16}));
  }
}

TEST_CASE("pictures that cannot be read say why", "[data][image][IMG-02]") {
  CHECK_THROWS_WITH(read_image(file("cmyk.jpg")),
                    Catch::Contains("CMYK") && Catch::Contains("cmyk.jpg"));
  CHECK_THROWS_WITH(read_image(file("cmyk.jpg"), channels(3)), Catch::Contains("CMYK"));
  std::string ycck = bytes_of("cmyk.jpg");
  ycck[ycck.find("Adobe") + 11] = 2;  // the transform
  CHECK_THROWS_WITH(decode_image(ycck, "ycck.jpg"), Catch::Contains("ycck.jpg: a JPEG in YCCK"));
  CHECK_THROWS_WITH(read_image(file("missing.png")), Catch::Contains("cannot be opened"));
  CHECK_THROWS_WITH(decode_image("hello", "hello.png"),
                    Catch::Contains("hello.png: not a picture"));
  CHECK_THROWS_AS(decode_image("", "none.png"), FileError);
  const std::string whole = bytes_of("rgb.png");
  for (size_t n = 0; n + 13 < whole.size(); n += 3)
    CHECK_THROWS_AS(decode_image(whole.substr(0, n), "cut.png"), FileError);
}

TEST_CASE("a cut picture is refused in every format", "[data][image][IMG-02]") {
  // 3 x 2 pixels of 1 to 18, as the formats' texts have them; decoders take missing bytes for
  // zeros.
  std::string rgb, bgr_from_below;
  for (int v = 1; v <= 18; ++v) rgb += char(v);
  for (int row : {1, 0}) {
    for (int x = 0; x < 3; ++x)
      for (int c : {2, 1, 0}) bgr_from_below += rgb[size_t(9 * row + 3 * x + c)];
    bgr_from_below += std::string(3, '\0');  // BMP rows are multiples of 4 bytes
  }
  std::string ppm = "P6 3 2 255\n" + rgb;
  std::string bmp =
      "BM" + std::string("\x4e\0\0\0\0\0\0\0\x36\0\0\0\x28\0\0\0\3\0\0\0\2\0\0\0\1\0\x18\0", 28) +
      std::string(24, '\0') + bgr_from_below;
  std::string tga = std::string("\0\0\2\0\0\0\0\0\0\0\0\0\3\0\2\0\x18\0", 18) +
                    bgr_from_below.substr(0, 9) + bgr_from_below.substr(12, 9);
  // One pixel, white: a palette of two, then LZW codes clear, 1, end.
  std::string gif("GIF89a\1\0\1\0\x80\0\0\0\0\0\xff\xff\xff,\0\0\0\0\1\0\1\0\0\2\2\x4c\1\0;", 35);
  struct Case {
    std::string name, whole;
    size_t needed;  // bytes without which pixels are missing
    double sum;
  };
  for (const Case& c :
       {Case{"x.ppm", ppm, ppm.size(), 171}, Case{"x.bmp", bmp, bmp.size() - 3, 171},
        Case{"x.tga", tga, tga.size(), 171}, Case{"x.gif", gif, gif.size() - 2, 765}}) {
    INFO(c.name);
    ReadImageOptions as_rgb;
    as_rgb.channels = 3;
    CHECK(sum(decode_image(c.whole, c.name, as_rgb).to(f64)).item() == c.sum);
    for (size_t n = 0; n < c.needed; ++n) {
      INFO(n << " of " << c.whole.size() << " bytes");
      CHECK_THROWS_WITH(decode_image(c.whole.substr(0, n), c.name),
                        Catch::StartsWith(c.name + ": "));
    }
  }
}

TEST_CASE("resize equals PyTorch's with antialias", "[data][transforms]") {
  Tensor x = zeros({1, 5, 6});
  for (int64_t i = 0; i < 30; ++i) x.mutable_data<float>()[i] = float(double(73 * i % 251) / 64);
  // torch.nn.functional.interpolate(mode="bilinear", antialias=True, align_corners=False)
  const V small = {1.049665, 1.599206, 2.499752, 1.555246, 2.022787, 1.528742,
                   1.772184, 2.730686, 2.17885,  2.191468, 1.784722, 1.703962};
  const V large = {0.0,      0.570312, 1.330729, 2.091146, 2.851562,
                   2.958333, 1.104166, 1.210938, 1.78125};
  V got = values(resize(x, 3, 4));
  for (size_t i = 0; i < small.size(); ++i) CHECK(got[i] == Approx(small[i]).epsilon(1e-5));
  got = values(resize(x, 7, 9));
  for (size_t i = 0; i < large.size(); ++i) CHECK(got[i] == Approx(large[i]).margin(2e-6));
}

TEST_CASE("crops and flips move pixels and invent none", "[data][transforms]") {
  Tensor x = reshape(arange(12, {f32}), {1, 3, 4}) + 1;
  CHECK(values(horizontal_flip(x)[0][0]) == V{4, 3, 2, 1});
  Generator random(1);
  bool moved = false;
  for (int i = 0; i < 50; ++i) {
    Tensor y = random_crop(x, 2, random);
    CHECK(y.shape() == x.shape());
    moved = moved || !equal(x, y);
    for (double v : values(y)) CHECK((v >= 0 && v <= 12));
  }
  CHECK(moved);
  CHECK(equal(random_crop(x, 0, random), x));
  CHECK(equal(random_horizontal_flip(x, random, 0), x));
  CHECK(values(normalize(x, {1}, {2}))[2] == 1);
  CHECK_THROWS_AS(normalize(x, {1, 2}, {1, 2}), ShapeError);
  CHECK_THROWS_AS(normalize(x.to(u8), {1}, {1}), DTypeError);
  CHECK(values(to_float(tensor({0, 51, 255}).to(u8).to(u8))) == V{0, float(0.2), 1});
}
