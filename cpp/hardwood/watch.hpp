#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>

namespace hardwood {

using Time = std::chrono::steady_clock::time_point;

/// The moment so many seconds after another; infinity is far off.
inline Time after(Time start, double seconds) {
  using Seconds = std::chrono::duration<double>;
  const Seconds most = std::chrono::duration_cast<Seconds>(Time::max() - start) / 2;
  return start + std::chrono::duration_cast<Time::duration>(std::min(Seconds(seconds), most));
}

/// Seen by two threads: one that searches, one that waits, shows progress, and may stop it.
struct Watch {
  std::atomic<bool> stop{false};
  std::atomic<std::int64_t> n_done{0};
  std::atomic<std::int64_t> n_open{0};  ///< of those done: left without an exact answer
  Time deadline = Time::max();

  /// Whether the search has to end: somebody stopped it, or its time is over.
  bool over() const {
    return stop.load(std::memory_order_relaxed) || std::chrono::steady_clock::now() >= deadline;
  }
};

}  // namespace hardwood
