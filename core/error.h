// Errors that name the culprit: who was running (operator, module path), what is wrong, with
// which shapes and types.
//
//   check<ShapeError>(k == k2, "inner sizes differ:", a.shape(), b.shape());
//   -> "blocks.3.attn.qkv (Linear): matmul: inner sizes differ: [32,128,700] [2304,768]"
#pragma once
#include <cstdint>
#include <initializer_list>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>

namespace tg {

// The caller's fault: a message of one line, and what to do about it where that is known.
struct Error : std::runtime_error {
  using runtime_error::runtime_error;
};
struct ShapeError : Error {
  using Error::Error;
};
struct DTypeError : Error {
  using Error::Error;
};
struct DeviceError : Error {
  using Error::Error;
};
struct IndexError : Error {
  using Error::Error;
};
struct ValueError : Error {
  using Error::Error;
};
struct FileError : Error {
  using Error::Error;
};
struct AutogradError : Error {
  using Error::Error;
};
struct OutOfMemoryError : Error {
  using Error::Error;
};
// A fault of ours: please report.
struct InternalError : std::logic_error {
  using logic_error::logic_error;
};

// "blocks.3.fc (Linear): matmul: ", or "" when no scope is open on this thread.
std::string running_prefix();

std::string to_text(std::string_view s);
inline std::string to_text(const char* s) { return s; }
std::string to_text(bool b);
std::string to_text(double v);  // shortest form that reads back, independent of the locale
template <class T>
requires(std::is_integral_v<T> && !std::is_same_v<T, bool>) std::string to_text(T v) {
  return std::to_string(v);
}

std::string join_words(std::initializer_list<std::string> words);

// Throws Kind with the running prefix; the arguments are written one after the other, with a
// space between, through to_text (found by argument-dependent lookup).
template <class Kind = Error, class... Args>
[[noreturn]] void fail(const Args&... args) {
  if constexpr (std::is_same_v<Kind, InternalError>)
    throw Kind(running_prefix() + join_words({to_text(args)...}) + " (a fault inside tapegrad)");
  else
    throw Kind(running_prefix() + join_words({to_text(args)...}));
}

template <class Kind = Error, class... Args>
inline void check(bool ok, const Args&... args) {
  if (!ok) [[unlikely]]
    fail<Kind>(args...);
}

}  // namespace tg
