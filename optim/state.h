// What optimizers and schedules save: tensors by name, and settings as text.
#pragma once
#include <string>
#include <utility>
#include <vector>

#include "tapegrad/core/tensor.h"
#include "tapegrad/nn/state_dict.h"

namespace tg::optim {

// "fc.weight.exp_avg" -> a tensor, "group.0.lr" -> "0.001". Numbers are written so that they read
// back to the same bits.
struct State {
  NamedTensors tensors;
  std::vector<std::pair<std::string, std::string>> values;

  void set(const std::string& name, const std::string& value);
  const std::string* find(const std::string& name) const;  // nullptr if there is none
  const Tensor* find_tensor(const std::string& name) const;
  // ValueError if there is none, or if it is not a number.
  const std::string& text(const std::string& name) const;
  double number(const std::string& name) const;
  int64_t integer(const std::string& name) const;
};

// Sees the settings of an optimizer or a schedule, by name.
struct SettingVisitor {
  virtual void number(const char* name, double& value) = 0;
  virtual void integer(const char* name, int64_t& value) = 0;
  virtual void flag(const char* name, bool& value) = 0;

 protected:
  ~SettingVisitor() = default;
};

// Puts the settings that a visit shows into the state under a prefix, ...
class SettingWriter final : public SettingVisitor {
 public:
  SettingWriter(State& state, std::string prefix) : state_(state), prefix_(std::move(prefix)) {}
  void number(const char* name, double& value) override;
  void integer(const char* name, int64_t& value) override;
  void flag(const char* name, bool& value) override;

 private:
  State& state_;
  std::string prefix_;
};

// ... and reads them back: checks only (whether all are there and are numbers) when `apply` is
// false.
class SettingReader final : public SettingVisitor {
 public:
  SettingReader(const State& state, std::string prefix, bool apply)
      : state_(state), prefix_(std::move(prefix)), apply_(apply) {}
  void number(const char* name, double& value) override;
  void integer(const char* name, int64_t& value) override;
  void flag(const char* name, bool& value) override;

 private:
  const State& state_;
  std::string prefix_;
  bool apply_;
};

}  // namespace tg::optim
