// einsum by matrix products: each pair of operands is brought to [batch, left, summed] and
// [batch, summed, right], multiplied, and unfolded again.
#include <algorithm>
#include <cctype>
#include <string>

#include "tapegrad/autograd/op.h"
#include "tapegrad/autograd/ops/matmul.h"
#include "tapegrad/autograd/ops/reduction.h"
#include "tapegrad/autograd/ops/views.h"

namespace tg {
namespace {

// A dimension's name: its letter, or for the dimensions under "..." 256 + the position from the
// end.
using Label = int;
using Labels = std::vector<Label>;
constexpr Label kEllipsis = 256;

bool contains(const Labels& labels, Label label) {
  return std::find(labels.begin(), labels.end(), label) != labels.end();
}
int64_t position(const Labels& labels, Label label) {
  return std::find(labels.begin(), labels.end(), label) - labels.begin();
}

// The letters of one operand or of the result; "..." becomes `hidden` labels.
Labels parse(const std::string& equation, const std::string& term, int64_t hidden) {
  Labels labels;
  bool seen = false;
  for (size_t i = 0; i < term.size(); ++i) {
    if (std::isalpha(static_cast<unsigned char>(term[i]))) {
      labels.push_back(term[i]);
    } else if (term.compare(i, 3, "...") == 0 && !seen) {
      for (int64_t d = hidden; d > 0; --d) labels.push_back(kEllipsis + static_cast<Label>(d));
      seen = true;
      i += 2;
    } else {
      fail<ValueError>(
          "letters, one \"...\" per operand, \",\" and \"->\" make an equation, got \"" + equation +
          "\"");
    }
  }
  return labels;
}

struct Equation {
  std::vector<std::string> operands;
  std::string result;
  bool has_result = false;
};

Equation split(std::string text) {
  text.erase(std::remove(text.begin(), text.end(), ' '), text.end());
  Equation equation;
  const size_t arrow = text.find("->");
  if (arrow != std::string::npos) {
    equation.has_result = true;
    equation.result = text.substr(arrow + 2);
    text.resize(arrow);
  }
  size_t from = 0;
  for (size_t comma = text.find(','); comma != std::string::npos; comma = text.find(',', from)) {
    equation.operands.push_back(text.substr(from, comma - from));
    from = comma + 1;
  }
  equation.operands.push_back(text.substr(from));
  return equation;
}

struct Factor {
  Tensor value;
  Labels labels;  // all different
};

// Takes the diagonal of dimensions with one letter; the letter moves to the end.
Factor without_repeats(Factor f) {
  for (size_t i = 0; i < f.labels.size();) {
    const Label label = f.labels[i];
    const auto again =
        std::find(f.labels.begin() + static_cast<int64_t>(i) + 1, f.labels.end(), label);
    if (again == f.labels.end()) {
      ++i;
      continue;
    }
    const int64_t j = again - f.labels.begin();
    const int64_t left = f.value.size(static_cast<int64_t>(i)), right = f.value.size(j);
    check<ShapeError>(
        left == right,
        std::string("\"") + static_cast<char>(label) + "\" appears twice in one operand with sizes",
        left, "and", right);
    f.value = diagonal(f.value, 0, static_cast<int64_t>(i), j);
    f.labels.erase(again);
    f.labels.erase(f.labels.begin() + static_cast<int64_t>(i));
    f.labels.push_back(label);
  }
  return f;
}

// Sums the dimensions that nobody needs any more.
Factor keep_only(Factor f, const Labels& needed) {
  std::vector<int64_t> dims;
  Labels kept;
  for (size_t i = 0; i < f.labels.size(); ++i) {
    if (contains(needed, f.labels[i])) {
      kept.push_back(f.labels[i]);
    } else {
      dims.push_back(static_cast<int64_t>(i));
    }
  }
  if (!dims.empty()) {
    // Integers keep their dtype, as in a product; sum alone widens them. A sum of bools would only
    // say whether there is one.
    check<DTypeError>(f.value.dtype() != boolean, "bool cannot be summed:", f.value,
                      "- cast it with .to(i64)");
    f.value = sum(f.value, dims).to(f.value.dtype());
  }
  f.labels = kept;
  return f;
}

Tensor permuted(const Factor& f, const Labels& order) {
  std::vector<int64_t> dims;
  for (Label label : order) dims.push_back(position(f.labels, label));
  return permute(f.value, dims);
}

int64_t size_of(const Factor& f, Label label) { return f.value.size(position(f.labels, label)); }

// Stretches sizes of 1 to what the other operand has.
void match_sizes(Factor& f, const Factor& other) {
  Shape shape = f.value.shape();
  for (size_t i = 0; i < f.labels.size(); ++i) {
    if (contains(other.labels, f.labels[i]) && shape[static_cast<int>(i)] == 1) {
      shape[static_cast<int>(i)] = size_of(other, f.labels[i]);
    }
  }
  if (!(shape == f.value.shape())) f.value = expand(f.value, shape);
}

// One pair. `needed`: the letters of the result and of the operands that follow.
Factor multiply(Factor a, Factor b, const Labels& needed) {
  Labels needed_a = needed, needed_b = needed;
  needed_a.insert(needed_a.end(), b.labels.begin(), b.labels.end());
  needed_b.insert(needed_b.end(), a.labels.begin(), a.labels.end());
  a = keep_only(std::move(a), needed_a);
  b = keep_only(std::move(b), needed_b);
  match_sizes(a, b);
  match_sizes(b, a);

  Labels batch, left, right, summed;
  for (Label label : a.labels) {
    if (!contains(b.labels, label)) {
      left.push_back(label);
    } else {
      (contains(needed, label) ? batch : summed).push_back(label);
    }
  }
  for (Label label : b.labels) {
    if (!contains(a.labels, label)) right.push_back(label);
  }
  Shape shape;
  const auto total = [](const Factor& f, const Labels& labels) {
    int64_t n = 1;
    for (Label label : labels) n *= size_of(f, label);
    return n;
  };
  for (Label label : batch) shape.push_back(size_of(a, label));
  for (Label label : left) shape.push_back(size_of(a, label));
  for (Label label : right) shape.push_back(size_of(b, label));

  const auto joined = [](Labels x, const Labels& y, const Labels& z) {
    x.insert(x.end(), y.begin(), y.end());
    x.insert(x.end(), z.begin(), z.end());
    return x;
  };
  const Tensor x = reshape(permuted(a, joined(batch, left, summed)),
                           {total(a, batch), total(a, left), total(a, summed)});
  const Tensor y = reshape(permuted(b, joined(batch, summed, right)),
                           {total(b, batch), total(b, summed), total(b, right)});
  return {reshape(matmul(x, y), shape), joined(batch, left, right)};
}

// Without "->": the dimensions under "...", then the letters that appear once, in order.
Labels implied_result(const std::vector<Factor>& factors, int64_t hidden) {
  Labels all, result;
  for (const Factor& f : factors) all.insert(all.end(), f.labels.begin(), f.labels.end());
  for (int64_t d = hidden; d > 0; --d) result.push_back(kEllipsis + static_cast<Label>(d));
  for (Label letter = 'A'; letter <= 'z'; ++letter) {
    if (std::count(all.begin(), all.end(), letter) == 1) result.push_back(letter);
  }
  return result;
}

void check_sizes(const std::vector<Factor>& factors, const std::string& equation) {
  for (const Factor& f : factors) {
    for (Label label : f.labels) {
      for (const Factor& g : factors) {
        if (!contains(g.labels, label)) continue;
        const int64_t a = size_of(f, label), b = size_of(g, label);
        check<ShapeError>(a == b || a == 1 || b == 1,
                          "\"" + equation + "\": a letter stands for sizes", a, "and", b, "in",
                          f.value.shape(), "and", g.value.shape());
      }
    }
  }
}

int64_t count_letters(const std::string& term) {
  return std::count_if(term.begin(), term.end(),
                       [](char c) { return std::isalpha(static_cast<unsigned char>(c)) != 0; });
}

}  // namespace

Tensor einsum(const std::string& text, const std::vector<Tensor>& operands) {
  Op op("einsum");
  const Equation equation = split(text);
  check<ValueError>(!operands.empty(), "needs at least one operand");
  check<ValueError>(equation.operands.size() == operands.size(), "\"" + text + "\" names",
                    equation.operands.size(), "operands, got", operands.size());
  int64_t hidden = 0;  // the most dimensions that a "..." stands for
  std::vector<Factor> factors;
  for (size_t i = 0; i < operands.size(); ++i) {
    const Tensor x = op.in(operands[i]);
    const std::string& term = equation.operands[i];
    const int64_t letters = count_letters(term), under = x.dim() - letters;
    const bool has_ellipsis = term.find("...") != std::string::npos;
    Labels labels = parse(text, term, under);
    check<ShapeError>(has_ellipsis ? under >= 0 : under == 0,
                      "\"" + term + "\" in \"" + text + "\" does not fit an operand of shape",
                      x.shape());
    factors.push_back({x, std::move(labels)});
    hidden = std::max(hidden, under);
  }
  const Labels result =
      equation.has_result ? parse(text, equation.result, hidden) : implied_result(factors, hidden);
  for (Factor& f : factors) f = without_repeats(std::move(f));
  check_sizes(factors, text);
  for (size_t i = 0; i < result.size(); ++i) {
    const bool known = std::any_of(factors.begin(), factors.end(),
                                   [&](const Factor& f) { return contains(f.labels, result[i]); });
    check<ValueError>(known, "\"" + text + "\": a letter of the result is in no operand");
    check<ValueError>(position(result, result[i]) == static_cast<int64_t>(i),
                      "\"" + text + "\": a letter appears twice in the result");
  }

  Factor left = factors[0];
  for (size_t i = 1; i < factors.size(); ++i) {
    Labels needed = result;
    for (size_t j = i + 1; j < factors.size(); ++j) {
      needed.insert(needed.end(), factors[j].labels.begin(), factors[j].labels.end());
    }
    left = multiply(std::move(left), factors[i], needed);
  }
  left = keep_only(std::move(left), result);
  return permuted(left, result);
}

}  // namespace tg
