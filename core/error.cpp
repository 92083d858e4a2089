#include "tapegrad/core/error.h"

#include <charconv>

#include "tapegrad/core/scope.h"

namespace tg {

std::string module_path() {
  const Scope* chain[64];
  int n = 0;
  for (const Scope* s = thread_state.scope; s && n < 64; s = s->outer())
    if (s->is_module()) chain[n++] = s;
  std::string path;
  for (int i = n - 1; i > 0; --i) {  // outermost first
    const Scope &parent = *chain[i], &child = *chain[i - 1];
    std::string name;
    if (!parent.child_name_ || !parent.child_name_(parent.module_, child.module_, name)) name = "?";
    if (!path.empty()) path += '.';
    path += name;
  }
  if (n == 0) return "";
  return (path.empty() ? "" : path + " ") + "(" + chain[0]->type_name() + ")";
}

const char* running_operator() {
  const char* name = nullptr;
  for (const Scope* s = thread_state.scope; s && !s->is_module(); s = s->outer()) name = s->name();
  return name;
}

std::string running_prefix() {
  // The outermost operator inside the innermost module is what the user called. Inside a backward
  // it is the recorded operator that counts, and the module it was recorded in if that was kept.
  const Scope* op = nullptr;
  for (const Scope* s = thread_state.scope; s && !s->is_module(); s = s->outer()) {
    op = s;
    if (s->is_backward()) break;
  }
  bool backward = op && op->is_backward();
  std::string prefix = backward ? (op->path_ ? *op->path_ : "") : module_path();
  if (!prefix.empty()) prefix += ": ";
  if (op) prefix += std::string(op->name()) + (backward ? " backward: " : ": ");
  return prefix;
}

std::string to_text(std::string_view s) { return std::string(s); }
std::string to_text(bool b) { return b ? "true" : "false"; }

std::string to_text(double v) {
  char buffer[32];
  auto end = std::to_chars(buffer, buffer + sizeof buffer, v).ptr;
  return std::string(buffer, end);
}

std::string join_words(std::initializer_list<std::string> words) {
  std::string text;
  for (const std::string& w : words) {
    if (w.empty()) continue;
    char first = w[0];
    bool glue = text.empty() || first == ',' || first == ';' || first == ')' || first == ':' ||
                text.back() == '(';
    if (!glue) text += ' ';
    text += w;
  }
  return text;
}

}  // namespace tg
