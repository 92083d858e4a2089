#include "tapegrad/optim/state.h"

#include <charconv>

namespace tg::optim {

void State::set(const std::string& name, const std::string& value) {
  values.emplace_back(name, value);
}

const std::string* State::find(const std::string& name) const {
  for (const auto& [key, value] : values)
    if (key == name) return &value;
  return nullptr;
}

const Tensor* State::find_tensor(const std::string& name) const {
  for (const auto& [key, tensor] : tensors)
    if (key == name) return &tensor;
  return nullptr;
}

const std::string& State::text(const std::string& name) const {
  const std::string* found = find(name);
  check<ValueError>(found != nullptr, "the saved state has no", name);
  return *found;
}

namespace {
template <class T>
T parse(const std::string& name, const std::string& text) {
  T value{};
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  check<ValueError>(error == std::errc() && end == text.data() + text.size(), "the saved state's",
                    name, "is no number:", text);
  return value;
}
}  // namespace

double State::number(const std::string& name) const { return parse<double>(name, text(name)); }
int64_t State::integer(const std::string& name) const { return parse<int64_t>(name, text(name)); }

void SettingWriter::number(const char* name, double& value) {
  state_.set(prefix_ + name, to_text(value));
}
void SettingWriter::integer(const char* name, int64_t& value) {
  state_.set(prefix_ + name, to_text(value));
}
void SettingWriter::flag(const char* name, bool& value) {
  state_.set(prefix_ + name, value ? "1" : "0");
}

void SettingReader::number(const char* name, double& value) {
  double saved = state_.number(prefix_ + name);
  if (apply_) value = saved;
}
void SettingReader::integer(const char* name, int64_t& value) {
  int64_t saved = state_.integer(prefix_ + name);
  if (apply_) value = saved;
}
void SettingReader::flag(const char* name, bool& value) {
  bool saved = state_.integer(prefix_ + name) != 0;
  if (apply_) value = saved;
}

}  // namespace tg::optim
