#include "tapegrad/autograd/explain.h"

#include <cmath>
#include <set>

#include "tapegrad/autograd/engine.h"
#include "tapegrad/autograd/grad_mode.h"
#include "tapegrad/autograd/node.h"
#include "tapegrad/autograd/ops/reduction.h"
#include "tapegrad/core/scope.h"

namespace tg {
namespace {

// Inputs of recorded operators that lead nowhere.
std::vector<std::string> loose_ends(const Tensor& loss) {
  std::vector<Node*> to_visit;
  std::set<Node*> seen;
  std::set<std::string> ends;
  if (Edge edge = edge_of(loss)) to_visit.push_back(edge.node.get());
  while (!to_visit.empty()) {
    Node* node = to_visit.back();
    to_visit.pop_back();
    if (!seen.insert(node).second) continue;
    for (size_t i = 0; i < node->inputs.size(); ++i) {
      if (node->inputs[i])
        to_visit.push_back(node->inputs[i].node.get());
      else
        ends.insert(std::string(node->op) + ", input " + std::to_string(i));
    }
  }
  return {ends.begin(), ends.end()};
}

}  // namespace

bool GradReport::healthy() const {
  for (const Entry& e : entries)
    if (e.state != GradState::ok && e.state != GradState::not_required) return false;
  return true;
}

std::string GradReport::text() const {
  std::string lines;
  bool cut = false;
  for (const Entry& e : entries) {
    const char* what = nullptr;
    if (e.state == GradState::zero) what = "gradient is zero";
    if (e.state == GradState::not_finite) what = "gradient is not finite";
    if (e.state == GradState::unreached) what = "no gradient: the loss does not depend on it";
    if (e.state == GradState::not_required) what = "frozen: does not require grad";
    if (what) lines += e.name + ": " + what + "\n";
    cut = cut || e.state == GradState::unreached;
  }
  if (cut) {
    lines += "the tape behind the loss ends without a leaf at:\n";
    for (const std::string& end : ends) lines += "  " + end + "\n";
    if (ends.empty()) lines += "  nowhere (the loss has no history at all)\n";
  }
  return lines.empty() ? "every parameter gets a finite gradient\n" : lines;
}

GradReport explain_grad(const Tensor& loss,
                        const std::vector<std::pair<std::string, Tensor>>& parameters) {
  Scope scope("explain_grad");
  GradReport report;
  report.ends = loose_ends(loss);
  std::vector<Tensor> wanted;
  for (const auto& [name, p] : parameters)
    if (p.requires_grad()) wanted.push_back(p);
  std::vector<Tensor> grads(wanted.size());
  if (loss.requires_grad() && !wanted.empty()) {
    GradOptions options;
    options.retain_graph = true;
    options.allow_unused = true;
    grads = grad({loss}, wanted, options);
  }
  NoGradGuard no_grad;
  size_t next = 0;
  for (const auto& [name, p] : parameters) {
    GradReport::Entry entry{name, GradState::not_required};
    if (p.requires_grad()) {
      const Tensor& g = grads[next++];
      entry.norm = g.defined() ? norm(g.to(f64)).item() : 0;
      entry.state = !g.defined()                 ? GradState::unreached
                    : !std::isfinite(entry.norm) ? GradState::not_finite
                    : entry.norm == 0            ? GradState::zero
                                                 : GradState::ok;
    }
    report.entries.push_back(entry);
  }
  return report;
}

}  // namespace tg
