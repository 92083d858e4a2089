// What every row of the operator table must be asked and must refuse: that no shape, dtype or
// operand has been forgotten, and that misuse raises an error of one line that says why.
#include <algorithm>

#include "ops/driver.h"

using namespace tg;
using namespace tg::test;

namespace {

bool has(const std::string& text, const std::string& part) { return text.find(part) != text.npos; }

// What the error says that the call raises; fails the test where it raises none, or not in one
// line.
template <class Kind = Error, class F>
std::string raised(F call) {
  std::string what;
  try {
    call();
    FAIL_CHECK("raises nothing");
  } catch (const Kind& e) {
    what = e.what();
    CHECK_FALSE(has(what, "\n"));
  } catch (const std::exception& e) {
    FAIL_CHECK("raises another kind of error: " << e.what());
  }
  return what;
}

template <class F>
bool any_sample(const Row& row, F wanted) {
  return std::any_of(row.samples.begin(), row.samples.end(),
                     [&](const Sample& s) { return !s.in.empty() && wanted(s.in[0].shape); });
}

// A shape that the row has no sample of is refused: by an error that says so.
void check_refusal(const Refusal& refusal, const char* shape) {
  INFO("no sample's first input is " << shape << ": " << refusal.why);
  REQUIRE(!refusal.why.empty());
  std::string what;
  try {
    refusal.call();
    FAIL_CHECK("raises nothing");
  } catch (const ShapeError& e) {
    what = e.what();
  } catch (const IndexError& e) {
    what = e.what();
  }
  INFO(what);
  CHECK(has(what, refusal.message));
}

}  // namespace

TEST_CASE("operator table: rows are complete", "[table]") {
  for_each_row([](const Family&, const Row& row) {
    CHECK(row.samples.size() >= 4);
    CHECK(bool(row.large) != bool(opted_out(row, Part::threads)));
    for (const OptOut& o : row.opt_outs) CHECK(o.reason.size() > 10);
    const bool scalar = any_sample(row, [](const Shape& s) { return s.rank() == 0; });
    const bool empty = any_sample(row, [](const Shape& s) { return s.numel() == 0; });
    if (!scalar) check_refusal(row.no_0d, "0-d");
    if (!empty) check_refusal(row.no_empty, "empty");
    CHECK((row.no_0d.why.empty() || !scalar));  // a reason that no longer holds
    CHECK((row.no_empty.why.empty() || !empty));
  });
}

TEST_CASE("operator table: misuse raises and says why", "[table]") {
  for_each_row([](const Family&, const Row& row) {
    for (const Fails& f : row.fails) {
      INFO("should say: " << f.message);
      const std::string what = raised(f.call);
      INFO(what);
      CHECK(has(what, f.message));
    }
  });
}

TEST_CASE("operator table: an undefined input raises and says so", "[table]") {
  for_each_row([](const Family&, const Row& row) {
    for (const Sample& sample : row.samples)
      for (size_t k = 0; k < sample.in.size(); ++k) {
        const auto& optional = row.optional;
        if (std::count(optional.begin(), optional.end(), int(k))) continue;
        INFO("input " << k << " of " << sample.torch);
        Tensors x = make_inputs(sample, f32);
        x[k] = Tensor();
        const std::string what = raised([&] { run(sample, x); });
        INFO(what);
        CHECK(has(what, "undefined"));
      }
  });
}

TEST_CASE("operator table: dtypes that are not claimed raise", "[table]") {
  for_each_row([](const Family&, const Row& row) {
    const Sample& sample = row.samples[0];
    Tensors x = make_inputs(sample, f32);
    if (std::none_of(x.begin(), x.end(), [](const Tensor& t) { return t.is_floating(); })) return;
    for (DType dtype : kEveryDType) {
      if (claims(row, dtype)) continue;
      INFO(name_of(dtype));
      INFO(raised([&] { run(sample, make_inputs(sample, dtype)); }));
    }
  });
}

TEST_CASE("operator table: in place, what must not be written raises", "[table]") {
  for_each_row([](const Family&, const Row& row) {
    if (!row.inplace) return;
    const auto sample = std::find_if(row.samples.begin(), row.samples.end(), [](const Sample& s) {
      return s.in[0].shape.rank() > 0 && s.in[0].shape[0] > 1;
    });
    REQUIRE(sample != row.samples.end());
    const auto written = [&](auto change) {
      Tensors x = make_inputs(*sample, f32);
      x[0] = change(x[0]);
      row.inplace(x);
    };
    INFO("an undefined tensor");
    CHECK(has(raised([&] { written([](const Tensor&) { return Tensor(); }); }), "undefined"));
    INFO("a leaf that requires grad");
    CHECK(has(raised<AutogradError>(
                  [&] { written([](const Tensor& x) { return x.clone().requires_grad_(); }); }),
              "leaf"));
    INFO("elements that share their place");
    CHECK(has(raised([&] { written(repeated); }), "share one place"));
  });
}
