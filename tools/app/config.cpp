#include "tapegrad/tools/app/config.h"

#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <numeric>

#include "tapegrad/core/error.h"
#include "tapegrad/core/io/file_reader.h"

namespace tg::app {
namespace {

std::vector<std::string> known_keys() {
  TrainConfig c;
  std::vector<std::string> keys;
  for_each_key(c, [&](const char* key, auto&, const char*) { keys.push_back(key); });
  return keys;
}

// How many letters to add, take away, replace, or swap with their neighbours.
int64_t edit_distance(const std::string& a, const std::string& b) {
  std::vector<std::vector<int64_t>> d(a.size() + 1, std::vector<int64_t>(b.size() + 1));
  for (size_t i = 0; i <= a.size(); ++i) d[i][0] = int64_t(i);
  std::iota(d[0].begin(), d[0].end(), 0);
  for (size_t i = 1; i <= a.size(); ++i)
    for (size_t j = 1; j <= b.size(); ++j) {
      int64_t replaced = d[i - 1][j - 1] + (a[i - 1] != b[j - 1]);
      d[i][j] = std::min({d[i - 1][j] + 1, d[i][j - 1] + 1, replaced});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        d[i][j] = std::min(d[i][j], d[i - 2][j - 2] + 1);
    }
  return d[a.size()][b.size()];
}

void assign(std::string& field, const std::string& text, const std::string&) { field = text; }

void assign(bool& field, const std::string& text, const std::string& where) {
  if (text == "true" || text == "yes" || text == "on")
    field = true;
  else if (text == "false" || text == "no" || text == "off")
    field = false;
  else
    fail<ValueError>(where, "must be true or false, not '" + text + "'");
}

template <class T>
void assign(T& field, const std::string& text, const std::string& where) {
  T value{};
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  check<ValueError>(error == std::errc() && end == text.data() + text.size(), where, "must be a",
                    std::is_integral_v<T> ? "whole number" : "number", ", not '" + text + "'");
  if constexpr (std::is_floating_point_v<T>)
    check<ValueError>(std::isfinite(value), where, "must be finite, not '" + text + "'");
  field = value;
}

// "data" -> "data.name, data.folder, ..."
std::string keys_below(const std::string& group) {
  std::string list;
  for (const std::string& key : known_keys())
    if (key.starts_with(group + ".")) list += (list.empty() ? "" : ", ") + key;
  return list;
}

void set_key(TrainConfig& c, const std::string& key, const std::string& text,
             const std::string& source) {
  bool found = false;
  for_each_key(c, [&](const char* name, auto& field, const char*) {
    if (key != name) return;
    found = true;
    assign(field, text, source + ": " + key);
  });
  if (found) return;
  std::string group = keys_below(key);
  check<ValueError>(group.empty(), source + ": '" + key + "' is a group of keys:", group);
  std::string hint = nearest(key, known_keys());
  fail<ValueError>(source + ": unknown key '" + key + "'" +
                   (hint.empty() ? "" : "; did you mean '" + hint + "'?"));
}

// Sets the keys of a map, of a group if there is a prefix. `lines` tells where each key stood: one
// that is written both as `optimizer.lr:` and inside of `optimizer:` stands twice all the same.
void set_tree(TrainConfig& c, const YAML::Node& node, const std::string& prefix,
              const std::string& source, std::map<std::string, int>& lines) {
  for (const auto& item : node) {
    int line = item.first.Mark().line + 1;
    std::string where = source + ": line " + std::to_string(line);
    check<ValueError>(item.first.IsScalar(), where + ": a key must be a word");
    std::string key = prefix + item.first.Scalar();
    const YAML::Node& value = item.second;
    // A group may be given in several pieces, but not under the same name.
    auto [earlier, first] = lines.emplace(key, line);
    check<ValueError>(first, where + ": '" + key + "' stands twice, first in line " +
                                 std::to_string(earlier->second));
    bool may_be_group = prefix.empty() && (value.size() > 0 || !keys_below(key).empty());
    if (value.IsMap() && may_be_group)
      set_tree(c, value, key + ".", source, lines);
    else if (value.IsMap())  // groups hold no groups; an alias could even lead back here for ever
      fail<ValueError>(where + ": '" + key + "' must be one value, not a group of keys");
    else if (value.IsScalar())
      set_key(c, key, value.Scalar(), where);
    else if (!value.IsNull())
      fail<ValueError>(where + ": '" + key + "' must be one value, not a list");
    else if (keys_below(key).empty())  // a group with nothing in it says nothing
      set_key(c, key, "", where);
  }
}

void parse_into(TrainConfig& c, const std::string& yaml, const std::string& source) {
  std::vector<YAML::Node> documents;
  try {
    documents = YAML::LoadAll(yaml);
  } catch (const YAML::Exception& e) {
    fail<ValueError>(source + ": line " + std::to_string(e.mark.line + 1) + ": " + e.msg);
  }
  check<ValueError>(documents.size() <= 1, source, ": holds more than one document");
  if (documents.empty() || documents[0].IsNull()) {  // only a comment, or bytes that are no text
    check<ValueError>(yaml.find('\0') == std::string::npos, source, ": is no text");
    return;
  }
  check<ValueError>(documents[0].IsMap(), source, ": expected 'key: value' lines");
  std::map<std::string, int> lines;
  set_tree(c, documents[0], "", source, lines);
}

std::string quoted_if_needed(const std::string& s) {
  // Words that a YAML reader could take for anything else are quoted, "null" and "~" among them.
  bool plain = !s.empty() && s != "null" && s != "Null" && s != "NULL";
  for (char ch : s)
    plain = plain && (std::isalnum(static_cast<unsigned char>(ch)) || ch == '_' || ch == '.' ||
                      ch == '/' || ch == '-');
  if (plain && s[0] != '-') return s;
  std::string text = "\"";
  for (char ch : s) {
    auto code = static_cast<unsigned char>(ch);
    if (ch == '"' || ch == '\\')
      text += std::string("\\") + ch;
    else if (code < 0x20)
      text += std::string("\\x") + "0123456789abcdef"[code / 16] + "0123456789abcdef"[code % 16];
    else
      text += ch;
  }
  return text + "\"";
}

// Texts of a config go into checkpoints and run.json, which hold UTF-8 only. Better refused here
// than at the first save.
void check_text(const std::string& key, const std::string& text) {
  check<ValueError>(text.find('\0') == std::string::npos, key + ": '" + text.c_str() + "...'",
                    "has a zero byte in it");
  check<ValueError>(is_utf8(text), key + ": '" + text +
                                       "' is not UTF-8; a symbolic link can give it another name");
}

std::string text_of(const std::string& s) { return quoted_if_needed(s); }
std::string text_of(bool b) { return b ? "true" : "false"; }
std::string text_of(int64_t v) { return std::to_string(v); }
std::string text_of(double v) { return to_text(v); }

}  // namespace

bool is_utf8(const std::string& text) {
  try {
    (void)nlohmann::json(text).dump();
  } catch (const nlohmann::json::exception&) {
    return false;
  }
  return true;
}

std::string nearest(const std::string& word, const std::vector<std::string>& known) {
  std::string best;
  int64_t least = std::max<int64_t>(2, int64_t(word.size()) / 2);
  for (const std::string& k : known) {
    // `lr` for `optimizer.lr`: the last part alone may be what was meant.
    std::string last = k.substr(k.rfind('.') == std::string::npos ? 0 : k.rfind('.') + 1);
    int64_t distance = std::min(edit_distance(word, k), edit_distance(word, last));
    if (distance < least) {
      least = distance;
      best = k;
    }
  }
  return best;
}

TrainConfig parse_config(const std::string& yaml, const std::string& source) {
  TrainConfig c;
  parse_into(c, yaml, source);
  return c;
}

void apply_overrides(TrainConfig& c, const std::vector<std::string>& overrides) {
  for (const std::string& word : overrides) {
    size_t equals = word.find('=');
    check<ValueError>(equals != std::string::npos && equals > 0,
                      "expected key=value, got '" + word + "'");
    set_key(c, word.substr(0, equals), word.substr(equals + 1), "command line");
  }
  validate(c);
}

namespace {
constexpr int64_t kMostBytes = 1 << 20;  // of a config file, which somebody has to write
}

TrainConfig load_config(const std::string& path, const std::vector<std::string>& overrides) {
  TrainConfig c;
  if (!path.empty()) parse_into(c, io::read_file(path, kMostBytes), path);
  apply_overrides(c, overrides);
  return c;
}

std::string to_yaml(const TrainConfig& config) {
  std::string text, group;
  for_each_key(config, [&](const char* name, const auto& field, const char* what) {
    std::string key = name;
    size_t dot = key.find('.');
    std::string own = dot == std::string::npos ? "" : key.substr(0, dot);
    if (own != group && !own.empty()) text += own + ":\n";
    group = own;
    std::string line =
        (own.empty() ? "" : "  ") + key.substr(own.empty() ? 0 : dot + 1) + ": " + text_of(field);
    if (line.size() < 32) line.resize(32, ' ');
    text += line + "  # " + what + "\n";
  });
  return text;
}

std::string differences(const TrainConfig& counts, const TrainConfig& other,
                        const std::vector<std::string>& except) {
  std::map<std::string, std::string> others;
  for_each_key(other, [&](const char* key, const auto& field, const char*) {
    others[key] = text_of(field);
  });
  std::string list;
  for_each_key(counts, [&](const std::string& key, const auto& field, const char*) {
    std::string value = text_of(field);
    if (others[key] == value || std::find(except.begin(), except.end(), key) != except.end())
      return;
    list += (list.empty() ? "" : ", ") + key + " is " + value + ", not " + others[key];
  });
  return list;
}

void validate(const TrainConfig& c) {
  for_each_key(c, [](const std::string& key, const auto& field, const char*) {
    if constexpr (std::is_same_v<std::decay_t<decltype(field)>, std::string>)
      check_text(key, field);
  });
  auto one_of = [](const std::string& key, const std::string& word,
                   const std::vector<std::string>& known) {
    if (std::find(known.begin(), known.end(), word) != known.end()) return;
    std::string list;
    for (const std::string& k : known) list += (list.empty() ? "" : ", ") + k;
    std::string hint = nearest(word, known);
    fail<ValueError>(key + ": unknown '" + word + "'" +
                     (hint.empty() ? "" : "; did you mean '" + hint + "'?") + " Known: " + list);
  };
  one_of("precision", c.precision, {"f32", "bf16", "f16"});
  one_of("data.name", c.data.name, {"fashion_mnist", "image_folder", "spirals"});
  one_of("model.name", c.model.name, {"mlp", "cnn", "resnet18"});
  one_of("optimizer.name", c.optimizer.name, {"sgd", "adam", "adamw"});
  one_of("schedule.name", c.schedule.name, {"cosine", "constant"});
  auto at_least = [](const std::string& key, auto value, auto least) {
    check<ValueError>(value >= least, key, "must be at least", least, ", not", value);
    if constexpr (std::is_integral_v<decltype(value)>) {
      constexpr int64_t kMost = 1'000'000'000;  // products of two of them fit 64 bits
      check<ValueError>(value <= kMost, key, "must be at most", kMost, ", not", value);
    }
  };
  // Each is a thread of the system's, with a stack of its own.
  auto few = [](const std::string& key, int64_t value) {
    constexpr int64_t kMostThreads = 1024;
    check<ValueError>(value <= kMostThreads, key, "must be at most", kMostThreads, ", not", value);
  };
  few("threads", c.threads);
  few("data.workers", c.data.workers);
  at_least("epochs", c.epochs, int64_t(1));
  at_least("threads", c.threads, int64_t(0));
  at_least("max_steps", c.max_steps, int64_t(0));
  at_least("checkpoint_every", c.checkpoint_every, int64_t(1));
  at_least("clip_norm", c.clip_norm, 0.0);
  at_least("data.batch_size", c.data.batch_size, int64_t(1));
  at_least("data.workers", c.data.workers, int64_t(0));
  at_least("data.validation", c.data.validation, int64_t(1));
  at_least("data.train_samples", c.data.train_samples, int64_t(0));
  at_least("data.image_size", c.data.image_size, int64_t(8));
  constexpr int64_t kMostPixels = 1 << 14;  // of a side
  check<ValueError>(c.data.image_size <= kMostPixels, "data.image_size must be at most",
                    kMostPixels, ", not", c.data.image_size);
  at_least("optimizer.weight_decay", c.optimizer.weight_decay, 0.0);
  at_least("schedule.warmup", c.schedule.warmup, int64_t(0));
  check<ValueError>(c.seed >= 0, "seed must be at least 0, not", c.seed);
  check<ValueError>(c.optimizer.momentum >= 0, "optimizer.momentum must be at least 0, not",
                    c.optimizer.momentum);
  check<ValueError>(c.optimizer.lr > 0, "optimizer.lr must be above 0, not", c.optimizer.lr);
  check<ValueError>(!c.run.empty() && c.run[0] != '.' && c.run.find('/') == std::string::npos,
                    "run must be the name of a folder, not '" + c.run + "'");
}

}  // namespace tg::app
