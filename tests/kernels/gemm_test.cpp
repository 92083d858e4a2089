// The product on plain memory against sums in long double: odd sizes, rows further apart than
// needed, all transposes, addends, batches, guard values around every output row, any number of
// threads.
#include "tapegrad/kernels/cpu/gemm/gemm.h"

#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include "catch.h"
#include "tapegrad/core/parallel.h"
#include "tapegrad/kernels/cpu/gemm/micro_kernel.h"

using namespace tg;
using namespace tg::kernels::gemm;

namespace {

using Random = std::mt19937_64;

int64_t pick(Random& random, int64_t low, int64_t high) {
  return std::uniform_int_distribution<int64_t>(low, high)(random);
}

template <class T>
std::vector<T> numbers(Random& random, int64_t count) {
  std::uniform_real_distribution<double> uniform(-1, 1);
  std::vector<T> values(static_cast<size_t>(count));
  for (T& value : values) value = static_cast<T>(uniform(random));
  return values;
}

enum class Addend { none, bias, rows, itself };

struct Case {
  int64_t rows, columns, depth, batch;
  bool a_transposed, b_transposed;
  Addend addend;
  int64_t a_gap, b_gap, c_gap;  // unused values at the end of each stored row
};

// One product with operands of its own; C is longer than needed at both ends and between its rows.
template <class T>
struct Problem {
  static constexpr int64_t kGuard = 40;
  Case shape;
  std::vector<T> a, b, extra, start, c;
  Product<T> product;
  Batch batch;

  Problem(const Case& s, uint64_t seed) : shape(s) {
    Random random(seed);
    product.rows = s.rows;
    product.columns = s.columns;
    product.depth = s.depth;
    product.a_transposed = s.a_transposed;
    product.b_transposed = s.b_transposed;
    product.a_row = (s.a_transposed ? s.rows : s.depth) + s.a_gap;
    product.b_row = (s.b_transposed ? s.depth : s.columns) + s.b_gap;
    product.c_row = s.columns + s.c_gap;
    batch.count = s.batch;
    batch.a_step = (s.a_transposed ? s.depth : s.rows) * product.a_row;
    batch.b_step = (s.b_transposed ? s.columns : s.depth) * product.b_row;
    batch.c_step = s.rows * product.c_row;
    a = numbers<T>(random, s.batch * batch.a_step);
    b = numbers<T>(random, s.batch * batch.b_step);
    start = numbers<T>(random, s.batch * batch.c_step + 2 * kGuard);
    extra = numbers<T>(random, s.batch * s.rows * s.columns);
    product.a = a.data();
    product.b = b.data();
    if (s.addend == Addend::rows) batch.addend_step = s.rows * s.columns;
    if (s.addend == Addend::itself) batch.addend_step = batch.c_step;
    // What is not read must not matter.
    if (s.addend != Addend::itself) {
      for (int64_t z = 0; z < s.batch; ++z) {
        for (int64_t i = 0; i < s.rows; ++i) {
          for (int64_t j = 0; j < s.columns; ++j) {
            start[at(z, i, j)] = std::numeric_limits<T>::quiet_NaN();
          }
        }
      }
    }
  }

  size_t at(int64_t z, int64_t i, int64_t j) const {
    return static_cast<size_t>(kGuard + z * batch.c_step + i * product.c_row + j);
  }

  void run() {
    c = start;
    product.c = c.data() + kGuard;
    if (shape.addend == Addend::bias) product.addend = extra.data();
    if (shape.addend == Addend::rows) {
      product.addend = extra.data();
      product.addend_row = shape.columns;
    }
    if (shape.addend == Addend::itself) {
      product.addend = product.c;
      product.addend_row = product.c_row;
    }
    multiply(product, batch);
  }

  long double addend(int64_t z, int64_t i, int64_t j) const {
    switch (shape.addend) {
      case Addend::none:
        return 0;
      case Addend::bias:
        return extra[static_cast<size_t>(j)];
      case Addend::rows:
        return extra[static_cast<size_t>((z * shape.rows + i) * shape.columns + j)];
      case Addend::itself:
        return start[at(z, i, j)];
    }
    return 0;
  }

  // The first element that is further from the truth than rounding explains, or a guard that was
  // overwritten.
  std::string fault() const {
    std::vector<bool> written(c.size());
    const double unit = std::numeric_limits<T>::epsilon();
    for (int64_t z = 0; z < shape.batch; ++z) {
      for (int64_t i = 0; i < shape.rows; ++i) {
        for (int64_t j = 0; j < shape.columns; ++j) {
          long double sum = addend(z, i, j), size = std::abs(sum);
          for (int64_t k = 0; k < shape.depth; ++k) {
            const T* az = a.data() + z * batch.a_step;
            const T* bz = b.data() + z * batch.b_step;
            const long double term =
                static_cast<long double>(shape.a_transposed ? az[k * product.a_row + i]
                                                            : az[i * product.a_row + k]) *
                (shape.b_transposed ? bz[j * product.b_row + k] : bz[k * product.b_row + j]);
            sum += term;
            size += std::abs(term);
          }
          written[at(z, i, j)] = true;
          // A chain of n roundings is off by at most n units of the sum of sizes; in practice far
          // less.
          const double bound =
              unit * (2 + 0.5 * std::sqrt(double(shape.depth))) * double(size) + 1e-300;
          if (!(std::abs(double(c[at(z, i, j)] - sum)) <= bound)) {
            return "element " + std::to_string(z) + " " + std::to_string(i) + " " +
                   std::to_string(j) + " is " + std::to_string(c[at(z, i, j)]) + " for " +
                   std::to_string(double(sum));
          }
        }
      }
    }
    for (size_t x = 0; x < c.size(); ++x) {
      if (!written[x] && std::memcmp(&c[x], &start[x], sizeof(T)) != 0)
        return "a guard was written";
    }
    return "";
  }
};

template <class T>
void check_case(const Case& s, uint64_t seed) {
  Problem<T> problem(s, seed);
  problem.run();
  INFO("rows " << s.rows << " columns " << s.columns << " depth " << s.depth << " batch " << s.batch
               << " transposed " << s.a_transposed << s.b_transposed << " addend " << int(s.addend)
               << " gaps " << s.a_gap << " " << s.b_gap << " " << s.c_gap);
  CHECK(problem.fault() == "");
}

struct Threads {
  int before = num_threads();
  explicit Threads(int n) { set_num_threads(n); }
  ~Threads() { set_num_threads(before); }
};

}  // namespace

TEMPLATE_TEST_CASE("product: random shapes", "[gemm]", float, double) {
  Random random(std::is_same_v<TestType, float> ? 1 : 2);
  const std::vector<int64_t> extents = {1,  2,  3,  5,  6,  7,  8,  13, 15,
                                        16, 17, 24, 31, 33, 48, 65, 97};
  const auto extent = [&] {
    return extents[static_cast<size_t>(pick(random, 0, int64_t(extents.size()) - 1))];
  };
  for (int i = 0; i < 300; ++i) {
    Case s{};
    s.rows = extent();
    s.columns = extent();
    s.depth = pick(random, 0, 7) == 0 ? pick(random, 300, 900) : extent();
    s.batch = pick(random, 0, 5) == 0 ? 3 : 1;
    s.a_transposed = pick(random, 0, 1);
    s.b_transposed = pick(random, 0, 1);
    s.addend = static_cast<Addend>(pick(random, 0, 3));
    s.a_gap = pick(random, 0, 1) * pick(random, 1, 9);
    s.b_gap = pick(random, 0, 1) * pick(random, 1, 9);
    s.c_gap = pick(random, 0, 1) * pick(random, 1, 9);
    check_case<TestType>(s, static_cast<uint64_t>(1000 + i));
  }
}

TEMPLATE_TEST_CASE("product: shapes that take each loop order", "[gemm]", float, double) {
  for (int transposes = 0; transposes < 4; ++transposes) {
    const bool at = transposes & 1, bt = transposes & 2;
    check_case<TestType>({150, 600, 64, 1, at, bt, Addend::none, 0, 0, 0}, 1);    // tiles outside
    check_case<TestType>({700, 70, 400, 1, at, bt, Addend::itself, 0, 0, 0}, 2);  // blocks of rows
    check_case<TestType>({40, 1100, 330, 1, at, bt, Addend::bias, 0, 0, 0},
                         3);  // blocks of columns
    check_case<TestType>({64, 128, 784, 1, at, bt, Addend::rows, 0, 0, 0}, 4);
    check_case<TestType>({1, 300, 500, 1, at, bt, Addend::none, 0, 0, 0}, 5);
    check_case<TestType>({300, 1, 500, 1, at, bt, Addend::none, 0, 0, 0}, 6);
  }
}

TEMPLATE_TEST_CASE("product: an empty inner dimension is the addend or zero", "[gemm][NUM-12]",
                   float, double) {
  for (Addend addend : {Addend::none, Addend::bias, Addend::rows, Addend::itself}) {
    check_case<TestType>({2, 3, 0, 3, false, false, addend, 0, 0, 0}, 1);
    check_case<TestType>({40, 70, 0, 1, true, true, addend, 0, 0, 2}, 2);
  }
  check_case<TestType>({0, 3, 4, 1, false, false, Addend::none, 0, 0, 0}, 3);
  check_case<TestType>({3, 0, 4, 1, false, false, Addend::none, 0, 0, 0}, 4);
}

TEMPLATE_TEST_CASE("product: the same bytes for any number of threads", "[gemm]", float, double) {
  const Case cases[] = {{129, 257, 700, 1, false, false, Addend::bias, 0, 0, 0},
                        {700, 65, 129, 1, false, true, Addend::none, 0, 0, 0},
                        {250, 250, 129, 1, true, false, Addend::itself, 0, 0, 0},
                        {40, 30, 64, 64, false, true, Addend::none, 0, 0, 0},
                        {130, 130, 130, 3, false, true, Addend::none, 0, 0, 0}};
  for (const Case& s : cases) {
    Problem<TestType> problem(s, 9);
    std::vector<TestType> bytes;
    for (int threads : {1, 2, 3, 7}) {
      Threads guard(threads);
      problem.run();
      if (threads == 1) {
        bytes = problem.c;
        CHECK(problem.fault() == "");
      }
      CHECK(std::memcmp(bytes.data(), problem.c.data(), bytes.size() * sizeof(TestType)) == 0);
    }
  }
}

TEST_CASE("product: beta 0 never reads old C", "[gemm][NUM-13]") {
  const float a[] = {1, 2, 3, 4}, b[] = {5, 6, 7, 8}, nan = std::nanf("");
  float c[] = {nan, nan, nan, nan};
  Product<float> p;
  p.rows = p.columns = p.depth = p.a_row = p.b_row = p.c_row = 2;
  p.a = a;
  p.b = b;
  p.c = c;
  multiply(p);
  CHECK((c[0] == 19 && c[1] == 22 && c[2] == 43 && c[3] == 50));
  check_case<float>({17, 19, 23, 1, false, false, Addend::none, 0, 0, 3}, 1);  // C starts as NaN
  check_case<float>({1, 19, 23, 1, false, false, Addend::none, 0, 0, 3}, 2);
  check_case<float>({17, 1, 23, 1, false, true, Addend::none, 0, 0, 3}, 3);
}

TEMPLATE_TEST_CASE("micro-kernel: segments with overlapping rows", "[gemm]", float, double) {
  // A window of 3 rows x 12 values slides over an image of 9-value rows: out[i][j].
  constexpr int64_t kSegments = 3, kDepth = 12, kStep = 2, kImageRow = 60;
  Random random(5);
  const auto image = numbers<TestType>(random, kSegments * kImageRow);
  const int widest = kTileColumns<TestType>;
  const auto b = numbers<TestType>(random, kSegments * kDepth * widest);
  for (int rows = 1; rows <= kTileRows<TestType>; ++rows) {
    for (int columns = 1; columns <= widest; ++columns) {
      std::vector<TestType> c(static_cast<size_t>(rows * widest + 1), TestType(7));
      Tile<TestType> tile;
      tile.rows = rows;
      tile.columns = columns;
      tile.segments = kSegments;
      tile.depth = tile.last_depth = kDepth;
      tile.a = image.data();
      tile.a_row = kStep;
      tile.a_segment = kImageRow;
      tile.b = b.data();
      tile.b_depth = widest;
      tile.b_segment = kDepth * widest;
      tile.c = c.data();
      tile.c_row = widest;
      run_tile(tile);
      bool right = c.back() == TestType(7);
      for (int64_t i = 0; i < rows; ++i) {
        for (int64_t j = 0; j < widest; ++j) {
          double sum = 0;
          for (int64_t s = 0; s < kSegments; ++s) {
            for (int64_t k = 0; k < kDepth; ++k) {
              sum += double(image[size_t(s * kImageRow + i * kStep + k)]) *
                     double(b[size_t((s * kDepth + k) * widest + j)]);
            }
          }
          const double got = c[size_t(i * widest + j)];
          right = right && (j < columns ? std::abs(got - sum) < 1e-5 : got == 7);
        }
      }
      INFO("rows " << rows << " columns " << columns);
      CHECK(right);
    }
  }
}
