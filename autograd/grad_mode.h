// Modes of a thread. Each thread has its own: a new std::thread starts with grad mode on.
#pragma once
#include "tapegrad/core/thread_state.h"

namespace tg {

inline bool grad_enabled() { return thread_state.grad_mode; }

// Inside, operators do not record.
class NoGradGuard {
 public:
  NoGradGuard() : old_(thread_state.grad_mode) { thread_state.grad_mode = false; }
  ~NoGradGuard() { thread_state.grad_mode = old_; }
  NoGradGuard(const NoGradGuard&) = delete;
  NoGradGuard& operator=(const NoGradGuard&) = delete;

 private:
  bool old_;
};

// Inside, operators record again (or not, with false).
class EnableGradGuard {
 public:
  explicit EnableGradGuard(bool enabled = true) : old_(thread_state.grad_mode) {
    thread_state.grad_mode = enabled;
  }
  ~EnableGradGuard() { thread_state.grad_mode = old_; }
  EnableGradGuard(const EnableGradGuard&) = delete;
  EnableGradGuard& operator=(const EnableGradGuard&) = delete;

 private:
  bool old_;
};

// No-grad, and what is made inside can never take part in a recorded computation: an operator
// that would have to record it raises.
class InferenceGuard {
 public:
  InferenceGuard() : old_(thread_state.inference_mode) { thread_state.inference_mode = true; }
  ~InferenceGuard() { thread_state.inference_mode = old_; }
  InferenceGuard(const InferenceGuard&) = delete;
  InferenceGuard& operator=(const InferenceGuard&) = delete;

 private:
  NoGradGuard no_grad_;
  bool old_;
};

// The first NaN or Inf that an operator makes, forward or backward, raises an AutogradError that
// names operator and module. Slows everything down.
class AnomalyGuard {
 public:
  explicit AnomalyGuard(bool enabled = true) : old_(thread_state.anomaly_mode) {
    thread_state.anomaly_mode = enabled;
  }
  ~AnomalyGuard() { thread_state.anomaly_mode = old_; }
  AnomalyGuard(const AnomalyGuard&) = delete;
  AnomalyGuard& operator=(const AnomalyGuard&) = delete;

 private:
  bool old_;
};

}  // namespace tg
