#pragma once

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <exception>
#include <mutex>
#include <utility>
#include <vector>

#ifdef _OPENMP
#include <omp.h>
#else
#include <system_error>
#include <thread>
#endif

namespace hardwood {

/// Call `body(i, thread)` for every i in [0, n) on up to `n_threads` threads.
///
/// The only place that knows OpenMP; without it the threads are the standard library's, started
/// anew for every loop. An exception leaves the loop on the calling thread: the first
/// one wins, work not yet started is skipped. Bodies must write to places of their own, so the
/// result cannot depend on the number of threads.
template <class Body>
void parallel_for(std::size_t n, int n_threads, Body&& body) {
  if (n_threads <= 1 || n <= 1) {
    for (std::size_t i = 0; i < n; ++i) body(i, 0);
    return;
  }
  std::exception_ptr first_error;
  std::mutex error_lock;
  std::atomic<bool> stop = false;
  const auto guarded = [&](std::size_t i, int thread) {
    if (stop) return;
    try {
      body(i, thread);
    } catch (...) {
      const std::lock_guard guard(error_lock);
      if (!first_error) first_error = std::current_exception();
      stop = true;
    }
  };
#ifdef _OPENMP
  const auto count = static_cast<std::ptrdiff_t>(n);
#pragma omp parallel for schedule(dynamic, 1) num_threads(n_threads)
  for (std::ptrdiff_t i = 0; i < count; ++i) {
    guarded(static_cast<std::size_t>(i), omp_get_thread_num());
  }
#else
  std::atomic<std::size_t> next = 0;
  const auto work = [&](int thread) {
    for (std::size_t i = next++; i < n; i = next++) guarded(i, thread);
  };
  std::vector<std::thread> helpers;
  try {
    for (int thread = 1; thread < n_threads && static_cast<std::size_t>(thread) < n; ++thread) {
      helpers.emplace_back(work, thread);
    }
  } catch (const std::system_error&) {
    // No more threads to have: those that started do all the work.
  }
  work(0);
  for (std::thread& helper : helpers) helper.join();
#endif
  if (first_error) std::rethrow_exception(first_error);
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
/// the bodies put into `more`. The last one comes first; a thread that finds none waits for those
/// that others may still make.
template <class Task, class Body>
void parallel_tasks(std::vector<Task> open, int n_threads, Body&& body) {
  std::mutex lock;
  std::condition_variable changed;
  std::size_t n_at_work = 0;
  bool stop = false;
  const auto n_workers = static_cast<std::size_t>(n_threads > 1 ? n_threads : 1);
  parallel_for(n_workers, n_threads, [&](std::size_t, int thread) {
    std::vector<Task> more;
    std::unique_lock guard(lock);
    while (true) {
      changed.wait(guard, [&] { return stop || !open.empty() || n_at_work == 0; });
      if (stop || open.empty()) return;
      Task task = std::move(open.back());
      open.pop_back();
      ++n_at_work;
      guard.unlock();
      try {
        body(std::move(task), thread, more);
      } catch (...) {
        guard.lock();
        stop = true;
        changed.notify_all();
        throw;
      }
      guard.lock();
      --n_at_work;
      for (Task& next : more) open.push_back(std::move(next));
      more.clear();
      changed.notify_all();
    }
  });
}

}  // namespace hardwood
