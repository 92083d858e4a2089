// Writes the operator table: as JSON for the script that makes the references, or with --coverage
// as the page that tells what each operator can do.
#include <algorithm>
#include <cstdio>
#include <cstring>

#include "ops/table.h"

using namespace tg;
using namespace tg::test;

namespace {

std::string quoted(const std::string& s) {
  std::string text = "\"";
  for (char c : s) {
    if (c == '"' || c == '\\') text += '\\';
    text += c;
  }
  return text + "\"";
}

std::string json(const In& in) {
  static const char* domains[] = {"normal", "positive", "unit", "integer", "boolean", "values"};
  std::string text =
      "{\"shape\":" + to_text(in.shape) + ",\"domain\":" + quoted(domains[int(in.domain)]);
  text += ",\"low\":" + to_text(in.low) + ",\"high\":" + to_text(in.high);
  text += ",\"grad\":" + to_text(in.grad) + ",\"values\":[";
  for (size_t i = 0; i < in.listed.size(); ++i)
    text += (i ? "," : "") + quoted(to_text(in.listed[i]));
  return text + "]}";
}

// The kinds of inputs that a row has references for.
std::string kinds(const Row& row) {
  std::string text;
  for (DType t : row.dtypes) {
    const std::string kind = quoted(reference_kind(t));
    if (text.find(kind) == text.npos) text += (text.empty() ? "" : ",") + kind;
  }
  return "[" + text + "]";
}

bool can(const Row& row, Part part) {
  return std::none_of(row.opt_outs.begin(), row.opt_outs.end(),
                      [&](const OptOut& o) { return o.part == part; });
}

int print_coverage() {
  std::printf(
      "# What each operator can do\n\n"
      "Made from the operator table (`tapegrad_row_list --coverage`); a test compares. Every mark "
      "is a "
      "test: values against references, gradients against references and differences, second "
      "derivatives against differences, the same bits for any number of threads with the work "
      "really "
      "cut, guard bytes around every buffer. Every row has an empty sample and a 0-d one (or tells "
      "why there is none), raises for every dtype that it does not name, for undefined inputs and, "
      "in place, for what must not be written. All on the CPU; on device cuda tests/cuda holds "
      "every "
      "row's values and gradients against the same references.\n");
  for (const Family& family : families()) {
    std::printf(
        "\n## %s\n\n| operator | dtypes | backward | twice | in place | threads | without |\n"
        "|---|---|---|---|---|---|---|\n",
        family.name.c_str());
    for (const Row& row : family.rows) {
      std::string dtypes, without;
      for (DType t : row.dtypes) dtypes += (dtypes.empty() ? "" : " ") + to_text(t);
      if (row.dtypes.size() == kEveryDType.size()) dtypes = "all";
      for (const OptOut& o : row.opt_outs) without += (without.empty() ? "" : "; ") + o.reason;
      if (!row.no_0d.why.empty())
        without += (without.empty() ? "0-d: " : "; 0-d: ") + row.no_0d.why;
      bool real = std::find(row.dtypes.begin(), row.dtypes.end(), f64) != row.dtypes.end();
      bool backward = real && can(row, Part::gradient);
      bool twice = backward && can(row, Part::second_derivative);
      std::printf("| %s | %s | %s | %s | %s | %s | %s |\n", row.name.c_str(), dtypes.c_str(),
                  backward ? "yes" : "", twice ? "yes" : "", row.inplace ? "yes" : "",
                  row.large && can(row, Part::threads) ? "yes" : "", without.c_str());
    }
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc > 1 && std::strcmp(argv[1], "--coverage") == 0) return print_coverage();
  std::printf("[");
  const char* family_comma = "";
  for (const Family& family : families()) {
    std::printf("%s\n{\"family\":%s,\"rows\":[", family_comma, quoted(family.name).c_str());
    family_comma = ",";
    const char* row_comma = "";
    for (const Row& row : family.rows) {
      std::printf("%s\n {\"name\":%s,\"kinds\":%s,\"samples\":[", row_comma,
                  quoted(row.name).c_str(), kinds(row).c_str());
      row_comma = ",";
      const char* sample_comma = "";
      for (const Sample& sample : row.samples) {
        std::string inputs;
        for (const In& in : sample.in) inputs += (inputs.empty() ? "" : ",") + json(in);
        std::printf("%s\n  {\"torch\":%s,\"in\":[%s]}", sample_comma, quoted(sample.torch).c_str(),
                    inputs.c_str());
        sample_comma = ",";
      }
      std::printf("]}");
    }
    std::printf("]}");
  }
  std::printf("]\n");
}
