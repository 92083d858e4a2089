#include "tapegrad/tools/app/config.h"

#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <fstream>
#include <numeric>
#include <sstream>

#include "tapegrad/core/error.h"

namespace tg::app {
namespace {

std::vector<std::string> known_keys() {
  TrainConfig c;
  std::vector<std::string> keys;
  for_each_key(c, [&](const char* key, auto&, const char*) { keys.push_back(key); });
  return keys;
}

int64_t edit_distance(const std::string& a, const std::string& b) {
  std::vector<int64_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), 0);
  for (size_t i = 1; i <= a.size(); ++i) {
    int64_t diagonal = row[0];
    row[0] = int64_t(i);
    for (size_t j = 1; j <= b.size(); ++j) {
      int64_t replaced = diagonal + (a[i - 1] != b[j - 1]);
      diagonal = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, replaced});
    }
  }
  return row.back();
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

void set_key(TrainConfig& c, const std::string& key, const std::string& text,
             const std::string& source) {
  bool found = false;
  for_each_key(c, [&](const char* name, auto& field, const char*) {
    if (key != name) return;
    found = true;
    assign(field, text, source + ": " + key);
  });
  if (found) return;
  std::string hint = nearest(key, known_keys());
  fail<ValueError>(source + ": unknown key '" + key + "'" +
                   (hint.empty() ? "" : "; did you mean '" + hint + "'?"));
}

void set_tree(TrainConfig& c, const YAML::Node& node, const std::string& prefix,
              const std::string& source) {
  check<ValueError>(node.IsMap(), source,
                    ": expected 'key: value' lines" + (prefix.empty() ? "" : " below " + prefix));
  for (const auto& item : node) {
    std::string key = prefix + item.first.as<std::string>();
    if (item.second.IsMap())
      set_tree(c, item.second, key + ".", source);
    else if (item.second.IsScalar())
      set_key(c, key, item.second.Scalar(), source);
    else if (item.second.IsNull())
      set_key(c, key, "", source);
    else
      fail<ValueError>(source, ":", key, "must be one value");
  }
}

void parse_into(TrainConfig& c, const std::string& yaml, const std::string& source) {
  YAML::Node tree;
  try {
    tree = YAML::Load(yaml);
  } catch (const YAML::Exception& e) {
    fail<ValueError>(source + ": line " + std::to_string(e.mark.line + 1) + ": " + e.msg);
  }
  if (!tree.IsNull()) set_tree(c, tree, "", source);
}

std::string quoted_if_needed(const std::string& s) {
  bool plain = !s.empty() && s.find_first_of(":#'\"{}[],&*!|>%@` \t\n") == std::string::npos;
  if (plain) return s;
  std::string text = "\"";
  for (char ch : s) {
    if (ch == '"' || ch == '\\') text += '\\';
    text += ch == '\n' ? ' ' : ch;
  }
  return text + "\"";
}
std::string text_of(const std::string& s) { return quoted_if_needed(s); }
std::string text_of(bool b) { return b ? "true" : "false"; }
std::string text_of(int64_t v) { return std::to_string(v); }
std::string text_of(double v) { return to_text(v); }

}  // namespace

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

TrainConfig load_config(const std::string& path, const std::vector<std::string>& overrides) {
  TrainConfig c;
  if (!path.empty()) {
    std::ifstream file(path);
    std::stringstream text;
    check<FileError>(bool(file), path + ": cannot be opened");
    text << file.rdbuf();
    check<FileError>(!file.bad() && (text || text.str().empty()), path + ": cannot be read");
    parse_into(c, text.str(), path);
  }
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

void validate(const TrainConfig& c) {
  auto one_of = [](const std::string& key, const std::string& word,
                   const std::vector<std::string>& known) {
    if (std::find(known.begin(), known.end(), word) != known.end()) return;
    std::string list;
    for (const std::string& k : known) list += (list.empty() ? "" : ", ") + k;
    std::string hint = nearest(word, known);
    fail<ValueError>(key + ": unknown '" + word + "'" +
                     (hint.empty() ? "" : "; did you mean '" + hint + "'?") + " Known: " + list);
  };
  one_of("data.name", c.data.name, {"fashion_mnist", "image_folder", "spirals"});
  one_of("model.name", c.model.name, {"mlp", "cnn", "resnet18"});
  one_of("optimizer.name", c.optimizer.name, {"sgd", "adam", "adamw"});
  one_of("schedule.name", c.schedule.name, {"cosine", "constant"});
  auto at_least = [](const std::string& key, auto value, auto least) {
    check<ValueError>(value >= least, key, "must be at least", least, ", not", value);
  };
  at_least("epochs", c.epochs, int64_t(1));
  at_least("seed", c.seed, int64_t(0));
  at_least("threads", c.threads, int64_t(0));
  at_least("max_steps", c.max_steps, int64_t(0));
  at_least("checkpoint_every", c.checkpoint_every, int64_t(1));
  at_least("clip_norm", c.clip_norm, 0.0);
  at_least("data.batch_size", c.data.batch_size, int64_t(1));
  at_least("data.workers", c.data.workers, int64_t(0));
  at_least("data.validation", c.data.validation, int64_t(1));
  at_least("data.train_samples", c.data.train_samples, int64_t(0));
  at_least("data.image_size", c.data.image_size, int64_t(8));
  at_least("optimizer.weight_decay", c.optimizer.weight_decay, 0.0);
  at_least("schedule.warmup", c.schedule.warmup, int64_t(0));
  check<ValueError>(c.optimizer.lr > 0, "optimizer.lr must be above 0, not", c.optimizer.lr);
  check<ValueError>(!c.run.empty() && c.run[0] != '.' && c.run.find('/') == std::string::npos,
                    "run must be the name of a folder, not '" + c.run + "'");
}

}  // namespace tg::app
