#include "tapegrad/tools/app/bench/report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "tapegrad/core/error.h"
#include "tapegrad/core/io/file_reader.h"
#include "tapegrad/tools/app/circumstances.h"

namespace tg::app {
namespace {

using Json = nlohmann::ordered_json;

const Result* find(const std::vector<Result>& results, const std::string& name) {
  const auto at =
      std::find_if(results.begin(), results.end(), [&](const Result& r) { return r.name == name; });
  return at == results.end() ? nullptr : &*at;
}

// Throws what the JSON library throws if something is missing or of another type.
Report report_of(const Json& json) {
  Report report;
  report.origin = fmt::format("{}, commit {}, threads {}", json.at("time").get<std::string>(),
                              json.at("code").at("commit").get<std::string>(),
                              json.at("machine").at("threads").get<int64_t>());
  for (const Json& one : json.at("results")) {
    Result r{one.at("name").get<std::string>(), one.at("flops").get<double>(),
             one.at("bytes").get<double>(), one.at("seconds").get<std::vector<double>>()};
    bool times = !r.seconds.empty();
    for (double s : r.seconds) times = times && std::isfinite(s) && s > 0;
    check<ValueError>(times, "'" + r.name + "' has no times");
    report.results.push_back(std::move(r));
  }
  return report;
}

}  // namespace

std::string results_text(const std::vector<Result>& results,
                         const std::vector<std::string>& command) {
  Json json = circumstances(command);
  json["results"] = Json::array();
  for (const Result& r : results)
    json["results"].push_back(
        {{"name", r.name}, {"flops", r.flops}, {"bytes", r.bytes}, {"seconds", r.seconds}});
  return text_of(json);
}

Report load_results(const std::string& path) {
  const std::string text = io::read_file(path);
  try {
    return report_of(Json::parse(text));
  } catch (const Json::parse_error& e) {
    fail<FileError>(path + ": not a file of `tapegrad bench --json`, or cut: no JSON at byte",
                    int64_t(e.byte), "of", int64_t(text.size()));
  } catch (const Json::exception&) {
    fail<FileError>(path + ": JSON, but not from `tapegrad bench --json`");
  } catch (const ValueError& e) {
    fail<FileError>(path + ":", e.what());
  }
}

Change change(const Result& before, const Result& after) {
  return {before.median() / after.median(), before.quantile(0.25) / after.quantile(0.75),
          before.quantile(0.75) / after.quantile(0.25)};
}

std::string comparison(const Report& before, const Report& after) {
  std::string lines, alone;
  for (const Result& b : before.results) {
    const Result* a = find(after.results, b.name);
    if (!a) {
      alone += fmt::format("only before: {}\n", b.name);
      continue;
    }
    const Change c = change(b, *a);
    const char* verdict = c.least > 1 ? "faster" : c.most < 1 ? "slower" : "";
    lines += fmt::format("{:<34} {:>9} {:>9} {:>7.2f}  ({:.2f} to {:.2f}) {}\n", b.name,
                         time_text(b.median()), time_text(a->median()), c.times, c.least, c.most,
                         verdict);
  }
  for (const Result& a : after.results)
    if (!find(before.results, a.name)) alone += fmt::format("only after: {}\n", a.name);
  check<ValueError>(!lines.empty(), "the two files have no result in common");
  return fmt::format("before: {}\nafter:  {}\n{:<34} {:>9} {:>9} {:>7}  (spread)\n", before.origin,
                     after.origin, "", "before", "after", "times") +
         lines + alone;
}

}  // namespace tg::app
