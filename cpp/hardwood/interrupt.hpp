#pragma once

#include <chrono>
#include <functional>
#include <utility>

namespace hardwood {

/// Lets whoever called the core stop it. While an `Interrupt` lives, `checkpoint` on its thread
/// calls `ask` a few times a second, and what `ask` throws ends the work.
///
/// `parallel_for` comes to a checkpoint before every turn, so only turns that take long need
/// checkpoints of their own.
class Interrupt {
 public:
  explicit Interrupt(std::function<void()> ask)
      : ask_(std::move(ask)), outer_(std::exchange(current_, this)) {}
  ~Interrupt() { current_ = outer_; }
  Interrupt(const Interrupt&) = delete;
  Interrupt& operator=(const Interrupt&) = delete;

  /// Of this thread; null if nobody can stop it.
  static Interrupt* current() { return current_; }

  void ask() { ask_(); }

  /// Ask if the last time is long ago. Looking at the clock can take longer than the work between
  /// two checkpoints, so where they come quickly most of them do not look.
  void ask_now_and_then() {
    if (n_skipped_++ < n_to_skip_) return;
    n_skipped_ = 0;
    const auto now = Clock::now();
    n_to_skip_ = now - last_look_ < std::chrono::milliseconds(1) ? kMostSkipped : 0;
    last_look_ = now;
    if (now - last_ask_ < std::chrono::milliseconds(100)) return;
    last_ask_ = now;
    ask_();
  }

 private:
  using Clock = std::chrono::steady_clock;
  static constexpr int kMostSkipped = 16;
  static inline constinit thread_local Interrupt* current_ = nullptr;

  std::function<void()> ask_;
  Interrupt* outer_;
  int n_skipped_ = 0, n_to_skip_ = 0;
  Clock::time_point last_look_ = Clock::now(), last_ask_ = last_look_;
};

/// A place where work can be stopped: it throws if it should be.
inline void checkpoint() {
  if (Interrupt* const interrupt = Interrupt::current()) interrupt->ask_now_and_then();
}

}  // namespace hardwood
