#include "tapegrad/kernels/lab.h"

#include "tapegrad/core/error.h"
#include "tapegrad/kernels/cpu/lab/rungs.h"

namespace tg::kernels::lab {
namespace {

template <class Problem>
struct Step {
  const char* name;
  Kernel<Problem> run;  // null: the engine's own
  const char* idea;
};

constexpr Step<Product> kMatmul[] = {
    {"three_loops", three_loops, "the formula as it stands"},
    {"row_order", row_order, "walk along rows: the same loops in another order"},
    {"vectors", vectors, "eight values in one instruction"},
    {"register_tile", register_tile, "a tile of C stays in registers"},
    {"packed_panels", packed_panels, "B is copied into the order in which it is read"},
    {"engine", nullptr, "blocks that fit the caches, packed on the way, asked for ahead"}};

constexpr Step<SoftmaxRow> kSoftmax[] = {
    {"formula", formula, "the formula as it stands"},
    {"stored", stored, "each exponential once, no division"},
    {"polynomial", polynomial, "an e^x without call and branch"},
    {"vectors", vectors, "eight values in one instruction"},
    {"engine", nullptr, "a shorter polynomial, 2^n by a shift, four sums at a time"}};

constexpr Step<LayerNormRow> kLayerNorm[] = {
    {"formula", formula, "the formula as it stands"},
    {"chains", chains, "four sums that do not wait for each other"},
    {"vectors", vectors, "eight values in one instruction"},
    {"engine", nullptr, "both"}};

constexpr Step<Images> kConv2d[] = {
    {"seven_loops", seven_loops, "the formula as it stands"},
    {"channel_rows", channel_rows, "walk along channels, test for the border once a window"},
    {"im2col", im2col, "write all windows down and multiply two matrices"},
    {"windows_in_place", windows_in_place, "the product reads the windows where they lie"},
    {"engine", nullptr, "Winograd: a quarter of the multiplications"}};

constexpr Step<Matrix> kTranspose[] = {
    {"gather", gather, "write in order, read jumping"},
    {"scatter", scatter, "read in order, write jumping: nobody waits for a store"},
    {"tiles", tiles, "squares that fit the first-level cache"},
    {"engine", nullptr, "blocks of 8 x 8 turned inside registers"}};

// visit(name, steps) for each ladder: the one list of them.
template <class Visitor>
void for_each_ladder(Visitor&& visit) {
  visit("matmul", kMatmul);
  visit("softmax", kSoftmax);
  visit("layer_norm", kLayerNorm);
  visit("conv2d", kConv2d);
  visit("transpose", kTranspose);
}

template <class Named>
std::string names(const std::vector<Named>& list) {
  std::string text;
  for (const Named& one : list) text += (text.empty() ? "" : ", ") + one.name;
  return text;
}

// visit(steps, chosen) for the ladder of that name.
template <class Visitor>
void on_ladder(const std::string& name, Visitor&& visit) {
  ladder(name);  // raises if there is none
  for_each_ladder([&]<class Problem, size_t n>(const char* of, const Step<Problem>(&steps)[n]) {
    if (name == of) visit(steps, chosen<Problem>);
  });
}

}  // namespace

const std::vector<Ladder>& ladders() {
  static const std::vector<Ladder> all = [] {
    std::vector<Ladder> list;
    for_each_ladder([&](const char* name, const auto& steps) {
      list.push_back({name, {}});
      for (const auto& step : steps) list.back().rungs.push_back({step.name, step.idea});
    });
    return list;
  }();
  return all;
}

const Ladder& ladder(const std::string& name) {
  for (const Ladder& one : ladders())
    if (one.name == name) return one;
  fail<ValueError>("the kernel lab has no '" + name + "', only", names(ladders()));
}

void use(const std::string& of, const std::string& rung) {
  on_ladder(of, [&](const auto& steps, auto& choice) {
    for (const auto& step : steps)
      if (rung == step.name) return choice.store(step.run, std::memory_order_relaxed);
    fail<ValueError>("the ladder of", of, "has no rung '" + rung + "', only",
                     names(ladder(of).rungs));
  });
}

std::string used(const std::string& of) {
  std::string name = "a function of the user's own";
  on_ladder(of, [&](const auto& steps, auto& choice) {
    for (const auto& step : steps)
      if (choice.load(std::memory_order_relaxed) == step.run) name = step.name;
  });
  return name;
}

Using::Using(const std::string& of, const std::string& rung) {
  on_ladder(of, [&](const auto&, auto& choice) {
    restore_ = [&choice, before = choice.load()] { choice.store(before); };
  });
  use(of, rung);
}

}  // namespace tg::kernels::lab
