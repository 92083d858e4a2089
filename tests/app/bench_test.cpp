// `tapegrad bench`: what it prints and writes, how two runs are compared, and what it says to words
// and files that make no sense. How fast anything is, is not tested.
#include <algorithm>
#include <filesystem>

#include "app/program.h"
#include "catch.h"
#include "tapegrad/kernels/lab.h"
#include "tapegrad/tools/app/bench/ladders.h"
#include "tapegrad/tools/app/bench/operators.h"
#include "tapegrad/tools/app/bench/report.h"
#include "tapegrad/tools/app/bench/roofs.h"

using namespace tg;
using namespace tg::app;
using namespace tg::test;
namespace fs = std::filesystem;

namespace {

Result times(const std::string& name, std::vector<double> seconds) { return {name, 0, 0, seconds}; }

std::string file_with(const TemporaryFolder& folder, const std::string& name,
                      const std::vector<Result>& results) {
  return folder.write(name, results_text(results, {"tapegrad", "bench"}));
}

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("bench: works take turns, one value for each round", "[bench]") {
  std::string order;
  const auto work = [&](char name) {
    return Work{std::string(1, name), [&order, name] {
                  order += char(name - 'a' + 'A');
                  return Ready{[&order, name] { order += name; }, 3, 4};
                }};
  };
  const std::vector<Result> results = measure({work('a'), work('b')}, {3, 0});
  CHECK(order == "AaBbababab");  // made and called once, then three rounds
  REQUIRE(results.size() == 2);
  CHECK(results[1].name == "b");
  CHECK(results[1].flops == 3);
  CHECK(results[1].bytes == 4);
  CHECK(results[1].seconds.size() == 3);
}

TEST_CASE("bench: medians, quarters and what they say of two runs", "[bench]") {
  const Result before = times("x", {5, 1, 3, 2, 4}), after = times("x", {0.5, 1.5, 1, 2, 2.5});
  CHECK(before.median() == 3);
  CHECK(before.quantile(0.25) == 2);
  CHECK(before.quantile(1) == 5);
  CHECK(times("x", {1, 2}).median() == 1.5);
  CHECK(times("x", {7}).quantile(0.25) == 7);
  const Change c = change(before, after);  // quarters 2 and 4 before, 1 and 2 after
  CHECK(c.times == 2);
  CHECK(c.least == 1);
  CHECK(c.most == 4);
  CHECK(time_text(0.00123) == "1.23 ms");
  CHECK(time_text(12) == "12 s");
  CHECK(time_text(4.5e-8) == "45 ns");
}

TEST_CASE("bench: the roof of a piece of work", "[bench]") {
  // A machine of 100 GFLOP/s that reads 10 and copies 20 GB/s wherever data lies.
  std::vector<Result> measured = {{"roof fma", 100e9, 0, {1}}};
  for (const Level& level : memory_levels()) {
    measured.push_back({"roof " + level.name + " read", 0, 10e9, {1}});
    measured.push_back({"roof " + level.name + " copy", 0, 20e9, {1}});
  }
  CHECK(bound(measured, 1e9, 1000).by == "arithmetic");
  CHECK(bound(measured, 1e9, 1000).roof == "roof fma");
  CHECK(bound(measured, 1e9, 1e10).by == "memory");  // 0.01 s of arithmetic, 0.5 s of moving
  CHECK(bound(measured, 1e9, 1e10).roof == "roof memory copy");
  CHECK(bound(measured, 0, 1000).by == "L1");
  // 200 GFLOP/s and 400 in the same rounds, of which the work does 20 and 100.
  const Result roof{"roof fma", 400e9, 0, {2, 1, 1}}, work{"x", 100e9, 0, {5, 1, 1}};
  CHECK(share_of_roof(work, roof) == Approx(0.25));  // of 0.1, 0.25, 0.25
  const Result wire{"roof L1 read", 0, 10, {1, 1}}, moves{"x", 7, 5, {1, 1}};
  CHECK(share_of_roof(moves, wire) == Approx(0.5));
}

TEST_CASE("bench: there is something to measure for all there is", "[bench]") {
  for (const kernels::lab::Ladder& ladder : kernels::lab::ladders()) {
    CHECK(main_work(ladder.name).name == ladder.name);
    CHECK(rung_works(ladder).size() == ladder.rungs.size());
  }
  std::vector<std::string> names;
  for (const Work& work : operator_works()) names.push_back(work.name);
  std::sort(names.begin(), names.end());
  CHECK(std::unique(names.begin(), names.end()) == names.end());  // what --compare goes by
  CHECK(operator_works("softmax").size() == 1);
  CHECK(operator_works("no such operator").empty());
  const Ready product = operator_works("matmul 512 x 512 x 512")[0].make();
  CHECK(product.flops == 2.0 * 512 * 512 * 512);
  CHECK(product.bytes == 3.0 * 512 * 512 * 4);
}

TEST_CASE("program: bench measures roofs and operators", "[program][bench]") {
  TemporaryFolder folder;
  const std::string file = folder / "a.json";
  const Finished f = run({"bench", "--only", "4 elements", "--seconds", "0.0001", "--rounds", "2",
                          "--threads", "1", "--json", file});
  INFO(f.err);
  REQUIRE(f.status == 0);
  for (const char* part : {"1 thread, 2 rounds", "\nfma ", "GFLOP/s", "\nL1 read ", "\nL3 copy ",
                           "\nmemory copy past caches ", "\nx + y, 4 elements ", "of roof"})
    CHECK_THAT(f.out, Catch::Contains(part));
  const Report report = load_results(file);
  CHECK_THAT(report.origin, Catch::Contains(", threads 1"));
  REQUIRE(report.results.size() == roof_works().size() + 1);
  for (const Result& r : report.results) CHECK(r.seconds.size() == 2);
  CHECK(report.results.back().flops == 4);
  CHECK(report.results.back().bytes == 48);
  CHECK(run({"bench", "--compare", file, file}).status == 0);
}

TEST_CASE("program: bench lab measures every rung", "[program][bench]") {
  TemporaryFolder folder;
  const std::string file = folder / "a.json";
  const Finished f = run({"bench", "lab", "softmax", "layer_norm", "--seconds", "0.0001",
                          "--rounds", "1", "--json", file});
  INFO(f.err);
  REQUIRE(f.status == 0);
  for (const char* name : {"softmax", "layer_norm"})
    for (const kernels::lab::Rung& rung : kernels::lab::ladder(name).rungs) {
      CHECK_THAT(f.out, Catch::Contains("\n  " + rung.name + " "));
      CHECK_THAT(f.out, Catch::Contains("  " + rung.idea + "\n"));
    }
  CHECK_FALSE(has(f.out, "three_loops"));
  CHECK(load_results(file).results[1].name == "lab softmax/stored");
}

TEST_CASE("program: bench --compare says what changed", "[program][bench]") {
  TemporaryFolder folder;
  const std::string before = file_with(folder, "a.json",
                                       {times("matmul", {2, 2, 2}), times("relu", {1, 1, 1}),
                                        times("sum", {1, 2, 3}), times("exp", {1})});
  const std::string after = file_with(folder, "b.json",
                                      {times("relu", {4, 4, 4}), times("matmul", {1, 1, 1}),
                                       times("sum", {2, 3, 1}), times("log", {1})});
  const Finished f = run({"bench", "--compare", before, after});
  INFO(f.out << f.err);
  CHECK(f.status == 0);
  const auto line = [&](const std::string& name) {
    const size_t from = f.out.find("\n" + name + " ");
    return from == std::string::npos
               ? ""
               : f.out.substr(from + 1, f.out.find('\n', from + 1) - from - 1);
  };
  CHECK_THAT(line("matmul"), Catch::Contains("2 s") && Catch::Contains("1 s") &&
                                 Catch::Contains("2.00  (2.00 to 2.00) faster"));
  CHECK_THAT(line("relu"), Catch::Contains("0.25  (0.25 to 0.25) slower"));
  CHECK_THAT(line("sum"), Catch::Contains("1.00  (0.60 to 1.67)"));  // 1.5 / 2.5 to 2.5 / 1.5
  CHECK_FALSE((has(line("sum"), "faster") || has(line("sum"), "slower")));
  CHECK(has(f.out, "only before: exp\n"));
  CHECK(has(f.out, "only after: log\n"));
}

TEST_CASE("program: files of results that are none", "[program][bench]") {
  TemporaryFolder folder;
  const std::string good = file_with(folder, "good.json", {times("relu", {1, 1})});
  const std::string text = TemporaryFolder::read(good), bad = folder / "bad.json";
  const auto refused = [&](const std::string& content, const std::vector<std::string>& parts) {
    folder.write("bad.json", content);
    check_refused(run({"bench", "--compare", good, bad}), with({bad}, parts));
    check_refused(run({"bench", "--compare", bad, good}), with({bad}, parts));
  };
  for (size_t length : {text.size() - 3, text.size() / 2, size_t(1)})
    refused(text.substr(0, length), {"cut", "of " + std::to_string(length)});
  refused("", {"no JSON"});
  refused("\x93NUMPY", {"no JSON"});
  refused("[1, 2]", {"not from `tapegrad bench --json`"});
  refused("{}", {"not from `tapegrad bench --json`"});
  refused(std::string(100000, '['), {"bench --json"});
  const auto changed = [&](const std::string& from, const std::string& to) {
    std::string other = text;
    REQUIRE(has(other, from));
    return other.replace(other.find(from), from.size(), to);
  };
  refused(changed("\"seconds\"", "\"minutes\""), {"not from"});
  refused(changed("\"relu\"", "7"), {"not from"});
  refused(changed("1.0,", "-1.0,"), {"'relu' has no times"});
  refused(changed("1.0,", "0,"), {"'relu' has no times"});
  check_refused(run({"bench", "--compare", good, folder / "none.json"}),
                {folder / "none.json", "No such file"});
  check_refused(run({"bench", "--compare", good, folder / ""}), {"is a folder"});
  check_refused(
      run({"bench", "--compare", good, file_with(folder, "other.json", {times("x", {1})})}),
      {"no result in common"});
}

TEST_CASE("program: words that bench cannot use", "[program][bench]") {
  TemporaryFolder folder;
  check_refused(run({"bench", "lab", "matmull"}), {"no 'matmull'", "matmul, softmax"});
  check_refused(run({"bench", "matmul"}), {"'bench lab'", "no 'matmul'"});
  check_refused(run({"bench", "--kernel", "matmul:fast"}), {"no rung 'fast'", "three_loops"});
  check_refused(run({"bench", "--kernel", "fast:engine"}), {"no 'fast'"});
  check_refused(run({"bench", "--kernel", "matmul"}), {"LADDER:RUNG", "'matmul'"});
  check_refused(run({"bench", "--only", "no such"}), {"'no such'"});
  check_refused(run({"bench", "lab", "--only", "relu"}), {"--only"});
  check_refused(run({"bench", "--rounds", "0"}), {"--rounds", "0"});
  check_refused(run({"bench", "--threads", "-1"}), {"--threads", "-1"});
  check_refused(run({"bench", "--json", folder / "no/such/folder.json"}), {"no/such/folder.json"});
  CHECK(run({"bench", "--compare", "one.json"}).status == 2);
  CHECK(run({"bench", "--rounds", "many"}).status == 2);
}

TEST_CASE("program: a whole run by a rung of the lab", "[program][bench]") {
  TemporaryFolder folder;
  write_idx(folder);
  check_refused(run(with(short_run(folder), {"--kernel", "matmul:fast"})), {"no rung 'fast'"});
  CHECK_FALSE(fs::exists(folder / "outputs"));
  const Finished f = run(
      with(short_run(folder), {"--kernel", "matmul:three_loops", "--kernel", "softmax:formula"}));
  INFO(f.err);
  CHECK(f.status == 0);
  CHECK(has(TemporaryFolder::read(folder / "outputs/run/run.json"), "matmul:three_loops"));
  // Other roundings, other weights; the engine's own rung changes nothing.
  REQUIRE(run(short_run(folder, "plain")).status == 0);
  REQUIRE(run(with(short_run(folder, "same"), {"--kernel", "matmul:engine"})).status == 0);
  const auto of = [&](const std::string& name) {
    return weights(folder / ("outputs/" + name + "/best.safetensors"));
  };
  CHECK(of("plain") == of("same"));
  CHECK(of("plain") != of("run"));
}
