#include "tapegrad/nn/summary.h"

#include <algorithm>
#include <charconv>

#include "tapegrad/autograd/grad_mode.h"
#include "tapegrad/nn/walk.h"

namespace tg::nn {

namespace {

// Fills a row at each call of a module; takes its hooks off whatever happens.
class Watch {
 public:
  explicit Watch(Module& model) : eval_(model) {
    for (const NamedModule& m : model.named_modules()) {
      Summary::Row& row = rows_.emplace_back();
      row.name = m.name;
      row.type = m.module->type_name();
      handles_.push_back(m.module->register_forward_hook(
          [this, i = rows_.size() - 1](Module& m, const std::vector<Tensor>& inputs,
                                       const Tensor& output) {
            Summary::Row& row = rows_[i];
            if (!output.defined()) return Tensor();
            row.output = output.shape();
            row.has_output = true;
            row.flops += m.flops(inputs, output);
            return Tensor();
          }));
    }
  }
  ~Watch() {
    for (HookHandle& h : handles_) h.remove();
  }
  Watch(const Watch&) = delete;
  Watch& operator=(const Watch&) = delete;
  std::vector<Summary::Row> take() { return std::move(rows_); }

 private:
  EvalGuard eval_;
  std::vector<Summary::Row> rows_;
  std::vector<HookHandle> handles_;
};

// "1,234,567"
std::string grouped(int64_t n) {
  std::string digits = std::to_string(n);
  for (int at = int(digits.size()) - 3; at > 0; at -= 3) digits.insert(size_t(at), ",");
  return digits;
}

// "12.3 MFLOP"
std::string flops_text(int64_t n) {
  const char* units[] = {"FLOP", "kFLOP", "MFLOP", "GFLOP", "TFLOP"};
  double value = double(n);
  int unit = 0;
  for (; value >= 1000 && unit < 4; ++unit) value /= 1000;
  char digits[48];  // to_chars, since no locale has a say there
  auto end =
      std::to_chars(digits, digits + sizeof digits, value, std::chars_format::fixed, unit ? 2 : 0)
          .ptr;
  return std::string(digits, end) + " " + units[unit];
}

using Cells = std::vector<std::string>;

std::string aligned(const std::vector<Cells>& lines) {
  std::vector<size_t> width(lines[0].size());
  for (const Cells& line : lines)
    for (size_t i = 0; i < line.size(); ++i) width[i] = std::max(width[i], line[i].size());
  std::string text;
  for (const Cells& line : lines) {
    std::string row;
    for (size_t i = 0; i < line.size(); ++i) {
      std::string gap(width[i] - line[i].size(), ' ');
      row += (i ? "  " : "") + (i < 2 ? line[i] + gap : gap + line[i]);  // numbers to the right
    }
    text += row.substr(0, row.find_last_not_of(' ') + 1) + "\n";
  }
  return text;
}

}  // namespace

Summary summarize(Module& model, const Function<void()>& run) {
  Summary s;
  {
    NoGradGuard no_grad;
    Watch watch(model);
    run();
    s.rows = watch.take();
  }
  size_t i = 0;
  detail::Seen seen;
  detail::walk(model, "", [&](const std::string&, Module&, const detail::Members& members) {
    Summary::Row& row = s.rows[i++];
    for (const auto& p : members.parameters) {
      if (!seen.first_time(*p.tensor)) continue;
      int64_t n = p.tensor->numel();
      row.parameters += n;
      s.parameters += n;
      s.trainable += p.tensor->requires_grad() ? n : 0;
      s.parameter_bytes += n * int64_t(size_of(p.tensor->dtype()));
    }
  });
  for (const Summary::Row& row : s.rows) s.flops += row.flops;
  return s;
}

std::string Summary::text() const {
  std::vector<Cells> lines{{"name", "type", "output", "parameters", "operations"}};
  for (const Row& row : rows)
    lines.push_back({row.name.empty() ? "(model)" : row.name, row.type,
                     row.has_output ? to_text(row.output) : "-",
                     row.parameters ? grouped(row.parameters) : "-",
                     row.flops ? flops_text(row.flops) : "-"});
  return aligned(lines) + grouped(parameters) + " parameters (" + grouped(trainable) +
         " trainable, " + bytes_text(parameter_bytes) + "), " + flops_text(flops) + " forward\n";
}

}  // namespace tg::nn
