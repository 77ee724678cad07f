#pragma once

#include <cstddef>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "hardwood/interrupt.hpp"

namespace hardwood {

/// One turn of a loop, its type forgotten; it returns how many more turns it makes necessary.
struct LoopBody {
  void* body;
  std::size_t (*call)(void* body, std::size_t turn, int thread);

  template <class Body>
  explicit LoopBody(Body& of)
      : body(const_cast<void*>(static_cast<const void*>(std::addressof(of)))),
        call([](void* plain, std::size_t turn, int thread) -> std::size_t {
          return (*static_cast<Body*>(plain))(turn, thread);
        }) {}
};

/// Make the turns 0 to `n_turns`, and as many more as they make necessary, on up to `n_threads`
/// threads. A loop inside a loop of several threads stays on its thread. Loops of one thread go
/// this way, too: bodies are large, and each is compiled once.
void run_loop(std::size_t n_turns, int n_threads, const LoopBody& body);

/// Call `body(i, thread)` for every i in [0, n) on up to `n_threads` threads, `thread` being below
/// `n_threads`.
///
/// This header and parallel.cpp are the only files that know threads. The calling thread, number 0,
/// goes through the turns itself; helpers, which sleep between loops, take turns as long as there
/// are any. Nobody waits for a helper that has not begun a turn: on a busy machine the caller
/// simply does more. A loop inside a loop stays on its thread.
///
/// An exception leaves the loop on the calling thread: the first one wins, work not yet started is
/// skipped. Every turn begins with a `checkpoint`. Bodies must write to places of their own, so the
/// result cannot depend on the number of threads.
template <class Body>
void parallel_for(std::size_t n, int n_threads, Body&& body) {
  const auto turn = [&](std::size_t i, int thread) -> std::size_t {
    body(i, thread);
    return 0;
  };
  run_loop(n, n > 1 ? n_threads : 1, LoopBody(turn));
}

/// Cut [0, n) into blocks of `block` and call `body(begin, end, thread)` for each.
template <class Body>
void parallel_blocks(std::size_t n, std::size_t block, int n_threads, Body&& body) {
  parallel_for((n + block - 1) / block, n_threads, [&](std::size_t b, int thread) {
    const std::size_t begin = b * block;
    body(begin, begin + block < n ? begin + block : n, thread);
  });
}

/// Work that makes more work: call `body(task, thread, more)` for every task, and for those that
/// the bodies put into `more`. The last one comes first.
template <class Task, class Body>
void parallel_tasks(std::vector<Task> open, int n_threads, Body&& body) {
  std::mutex lock;
  const auto turn = [&](std::size_t, int thread) {
    std::unique_lock guard(lock);
    Task task = std::move(open.back());
    open.pop_back();
    guard.unlock();
    std::vector<Task> more;
    body(std::move(task), thread, more);
    guard.lock();
    for (Task& next : more) open.push_back(std::move(next));
    return more.size();
  };
  run_loop(open.size(), n_threads, LoopBody(turn));
}

}  // namespace hardwood
