#include "tapegrad/autograd/print.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <ostream>

#include "tapegrad/autograd/grad_mode.h"
#include "tapegrad/autograd/ops/creation.h"
#include "tapegrad/autograd/ops/indexing.h"

namespace tg {
namespace {

constexpr int64_t kSummaryAbove = 1000;  // elements
constexpr int64_t kEdge = 3;             // elements shown at either end
constexpr size_t kLineWidth = 80;
constexpr int kDecimals = 4;

std::string number_text(double v, std::chars_format format, int decimals) {
  if (std::isnan(v)) return "nan";
  if (std::isinf(v)) return v < 0 ? "-inf" : "inf";
  char buffer[512];
  auto end = std::to_chars(buffer, buffer + sizeof buffer, v, format, decimals).ptr;
  return std::string(buffer, end);
}

// How all numbers of a tensor are written, from those that are shown.
struct NumberStyle {
  std::chars_format format = std::chars_format::fixed;
  int decimals = kDecimals;

  explicit NumberStyle(const std::vector<double>& values) {
    bool whole = true;
    double largest = 0, smallest = INFINITY;
    for (double v : values) {
      if (!std::isfinite(v) || v == 0) continue;
      whole = whole && v == std::floor(v);
      largest = std::max(largest, std::abs(v));
      smallest = std::min(smallest, std::abs(v));
    }
    if (largest == 0) smallest = 0;
    bool far = largest > 1e8 || (largest > 0 && largest / smallest > 1000);
    if (whole)
      far = largest > 1e8;
    else
      far = far || smallest < 1e-4;
    if (far)
      format = std::chars_format::scientific;
    else if (whole)
      decimals = 0;
  }
  std::string operator()(double v) const {
    std::string text = number_text(v, format, decimals);
    return decimals == 0 && std::isfinite(v) ? text + "." : text;
  }
};

// The elements to show, in row-major order, as text.
std::vector<std::string> element_texts(const Tensor& x) {
  std::vector<std::string> texts;
  if (x.is_floating()) {
    std::vector<double> values = x.to_vector<double>();
    NumberStyle style(values);
    for (double v : values) texts.push_back(style(v));
  } else {
    for (int64_t v : x.to_vector<int64_t>())
      texts.push_back(x.dtype() == DType::boolean ? (v ? "true" : "false") : std::to_string(v));
  }
  return texts;
}

// Without the middle of long dimensions.
Tensor edges(Tensor x) {
  for (int64_t d = 0; d < x.dim(); ++d) {
    int64_t n = x.size(d);
    if (n <= 2 * kEdge) continue;
    std::vector<int64_t> kept;
    for (int64_t i = 0; i < kEdge; ++i) kept.push_back(i);
    for (int64_t i = n - kEdge; i < n; ++i) kept.push_back(i);
    x = index_select(x, d, tensor(kept, {2 * kEdge}, {i64, x.device()}));
  }
  return x;
}

class Printer {
 public:
  Printer(const Tensor& x, bool summary)
      : full_(x.shape()), texts_(element_texts(summary ? edges(x) : x)), summary_(summary) {
    for (const std::string& t : texts_) width_ = std::max(width_, t.size());
  }

  void write(int dim, size_t indent, std::string& out) {
    if (full_.rank() == 0) {
      out += texts_[0];
      return;
    }
    bool last = dim == full_.rank() - 1;
    bool cut = summary_ && full_[dim] > 2 * kEdge;
    int64_t n = cut ? 2 * kEdge : full_[dim];
    size_t per_line =
        std::max<size_t>(1, (kLineWidth - std::min(indent, kLineWidth)) / (width_ + 2));
    std::string row_break(last ? 1 : size_t(full_.rank() - 1 - dim), '\n');
    row_break += std::string(indent + 1, ' ');
    size_t in_line = 0;
    out += '[';
    for (int64_t i = 0; i < n; ++i) {
      separate(i > 0, last, per_line, row_break, in_line, out);
      if (cut && i == kEdge) {
        out += "...";
        ++in_line;
        separate(true, last, per_line, row_break, in_line, out);
      }
      if (last) {
        const std::string& text = texts_[next_++];
        out += std::string(width_ - text.size(), ' ') + text;
        ++in_line;
      } else {
        write(dim + 1, indent + 1, out);
      }
    }
    out += ']';
  }

 private:
  static void separate(bool wanted, bool last, size_t per_line, const std::string& row_break,
                       size_t& in_line, std::string& out) {
    if (!wanted) return;
    out += ',';
    if (!last || in_line == per_line) {
      out += row_break;
      in_line = 0;
    } else {
      out += ' ';
    }
  }

  Shape full_;
  std::vector<std::string> texts_;
  bool summary_;
  size_t width_ = 0;
  size_t next_ = 0;
};

}  // namespace

std::string to_string(const Tensor& x) {
  if (!x.defined()) return "tensor(undefined)";
  NoGradGuard no_grad;
  std::string out = "tensor(";
  if (x.numel() == 0) {
    out += "[], shape=" + to_text(x.shape());
  } else if (x.device().is_cpu()) {
    Printer(x, x.numel() > kSummaryAbove).write(0, out.size(), out);
  } else {
    return to_string(x.to(kCpuDevice));
  }
  if (x.dtype() != f32 && x.dtype() != i64 && x.dtype() != DType::boolean)
    out += ", dtype=" + to_text(x.dtype());
  if (x.requires_grad()) out += ", requires_grad=true";
  return out + ")";
}

std::ostream& operator<<(std::ostream& out, const Tensor& x) { return out << to_string(x); }

}  // namespace tg
