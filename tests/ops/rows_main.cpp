// Writes the operator table for the script that makes the references: JSON on standard output.
#include <cstdio>

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

}  // namespace

int main() {
  std::printf("[");
  const char* family_comma = "";
  for (const Family& family : families()) {
    std::printf("%s\n{\"family\":%s,\"rows\":[", family_comma, quoted(family.name).c_str());
    family_comma = ",";
    const char* row_comma = "";
    for (const Row& row : family.rows) {
      bool whole = false, real = false;
      for (DType t : row.dtypes) (is_floating(t) ? real : whole) = true;
      std::printf("%s\n {\"name\":%s,\"integer\":%s,\"float\":%s,\"samples\":[", row_comma,
                  quoted(row.name).c_str(), whole ? "true" : "false", real ? "true" : "false");
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
