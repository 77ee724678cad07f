#include "hardwood/parallel.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <system_error>
#include <thread>

#ifndef _WIN32
#include <pthread.h>
#include <signal.h>
#include <time.h>
#endif

#include "hardwood/simd.hpp"

namespace hardwood {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::microseconds;
using std::chrono::milliseconds;

/// How long a thread looks out for work before it sleeps: a few times what waking up takes.
constexpr auto kSpin = microseconds(200);

/// A thread that has not run for so long, though it wanted to, shares its core with others.
constexpr Clock::duration kAway = milliseconds(1);

/// How long loops do without helpers that share their cores; longer each time.
constexpr Clock::duration kShortestPause = milliseconds(8), kLongestPause = milliseconds(512);

constinit thread_local bool inside_loop = false;

/// Thrown on a helper whose turn nobody wants any more.
struct Stopped {};

void relax() {
#if HARDWOOD_X86
  _mm_pause();
#endif
}

/// Look for a short while whether something holds.
template <class Holds>
bool spin_until(Holds&& holds) {
  const auto end = Clock::now() + kSpin;
  do {
    for (int i = 0; i < 32; ++i) {
      if (holds()) return true;
      relax();
    }
  } while (Clock::now() < end);
  return false;
}

/// For how long this thread did not run since it made this.
class Absence {
 public:
  Clock::duration so_far() const { return Clock::now() - begin_ - (at_work() - at_work_); }

 private:
  static Clock::duration at_work() {
#ifdef CLOCK_THREAD_CPUTIME_ID
    timespec now{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return std::chrono::seconds(now.tv_sec) + std::chrono::nanoseconds(now.tv_nsec);
#else
    return Clock::now().time_since_epoch();  // unknown: never away
#endif
  }

  Clock::time_point begin_ = Clock::now();
  Clock::duration at_work_ = at_work();
};

/// A loop that is being run. It lives as long as some thread still looks at it; its body only lives
/// until every turn is done.
class Loop {
 public:
  Loop(std::size_t n_turns, int n_threads, const LoopBody& body)
      : n_(n_turns), n_threads_(n_threads), body_(body) {}

  /// How many helpers could find work.
  std::size_t n_helpers_wanted() const {
    const std::size_t next = next_, n = n_;
    return std::min(static_cast<std::size_t>(n_threads_) - 1, n > next ? n - next : 0);
  }

  /// The number of a thread that wants to help; 0: there is nothing to do for it. The pool's lock
  /// is held.
  int join() {
    if (next_ >= n_) return 0;
    if (!numbers_.empty()) {
      const int number = numbers_.back();
      numbers_.pop_back();
      return number;
    }
    return n_numbers_ < n_threads_ ? n_numbers_++ : 0;
  }

  /// The thread helps no more; the pool's lock is held.
  void leave(int number) { numbers_.push_back(number); }

  bool stopped() const { return stop_.load(std::memory_order_relaxed); }

  /// Take turns as long as there are any. `grown` is called when a turn made more, `after_turn`
  /// after each of them.
  template <class Grown, class AfterTurn>
  void work(int thread, Grown&& grown, AfterTurn&& after_turn) {
    for (std::size_t turn; take(turn);) {
      std::size_t n_more = 0;
      if (!stopped()) {
        guarded([&] {
          checkpoint();
          n_more = body_.call(body_.body, turn, thread);
        });
      }
      after_turn();
      n_ += n_more;  // first, so that the turns are never all done when there are more
      ++n_done_;
      if (n_more > 0) grown();
      if (caller_sleeps_ && (n_more > 0 || all_done())) {
        const std::lock_guard guard(lock_);
        changed_.notify_one();
      }
    }
  }

  /// Wait for turns that helpers have begun. Returns whether all are done; else there are new ones.
  bool wait() {
    const auto over = [this] { return all_done() || next_ < n_; };
    if (!over() && !spin_until(over)) {
      std::unique_lock guard(lock_);
      caller_sleeps_ = true;
      while (!changed_.wait_for(guard, milliseconds(100), over)) {
        guard.unlock();
        if (Interrupt* const interrupt = Interrupt::current(); interrupt && !stopped()) {
          guarded([&] { interrupt->ask(); });
        }
        guard.lock();
      }
      caller_sleeps_ = false;
    }
    return all_done();
  }

  /// A helper that the machine did not let run tells so while the caller waits for it.
  void tell_absence(const Absence& absence) {
    if (caller_sleeps_ && absence.so_far() > kAway) held_up_ = true;
  }
  bool held_up() const { return held_up_; }

  void rethrow() {
    // Taken away: a helper that still looks at the loop must not be the one to destroy it.
    if (const std::exception_ptr error = std::move(first_error_)) std::rethrow_exception(error);
  }

 private:
  bool all_done() const {
    const std::size_t n_done = n_done_;  // before the other, which may grow meanwhile
    return n_done == n_;
  }

  bool take(std::size_t& turn) {
    turn = next_;
    while (turn < n_) {
      if (next_.compare_exchange_weak(turn, turn + 1)) return true;
    }
    return false;
  }

  template <class Call>
  void guarded(Call&& call) {
    try {
      call();
    } catch (...) {
      const std::lock_guard guard(lock_);
      if (!first_error_) first_error_ = std::current_exception();
      stop_ = true;
    }
  }

  std::atomic<std::size_t> n_;  // grows by what turns add
  const int n_threads_;
  const LoopBody body_;
  int n_numbers_ = 1;         // given to threads; 0 is the caller
  std::vector<int> numbers_;  // given back
  alignas(64) std::atomic<std::size_t> next_ = 0;
  alignas(64) std::atomic<std::size_t> n_done_ = 0;
  std::atomic<bool> stop_ = false, caller_sleeps_ = false, held_up_ = false;
  std::mutex lock_;
  std::condition_variable changed_;
  std::exception_ptr first_error_;
};

/// Threads that help with loops, and sleep when there are none. They are started when they are
/// first wanted and never end.
class ThreadPool {
 public:
  void run(const std::shared_ptr<Loop>& loop) {
    bool offered = !is_crowded() && offer(loop);
    do {
      loop->work(
          0,
          [&] {
            if (offered) wake_for(*loop);
          },
          [&] {
            if (!offered && !is_crowded()) offered = offer(loop);
          });
    } while (!loop->wait());
    if (offered) withdraw(loop);
  }

 private:
  /// More helpers than this never help, whatever number somebody asks for.
  static std::size_t most_helpers() {
    return std::max<std::size_t>(4 * std::thread::hardware_concurrency(), 16);
  }

  /// Whether helpers had better be left alone: others need the cores.
  bool is_crowded() const { return Clock::now().time_since_epoch() < alone_until_.load(); }

  bool offer(const std::shared_ptr<Loop>& loop) {
    std::unique_lock guard(lock_);
    open_.push_back(loop);
    wake_for(*loop, guard);
    return true;
  }

  void wake_for(const Loop& loop) {
    std::unique_lock guard(lock_);
    wake_for(loop, guard);
  }

  void wake_for(const Loop& loop, std::unique_lock<std::mutex>& guard) {
    const std::size_t n_wanted = loop.n_helpers_wanted();
    while (n_idle_ < n_wanted && n_helpers_ < most_helpers() && start()) {
    }
    const std::size_t n_ready = std::min(n_wanted, n_idle_), n_awake = n_idle_ - n_asleep_;
    const std::size_t n_calls = n_ready > n_awake ? n_ready - n_awake : 0;
    n_asleep_ -= n_calls;
    n_called_ += n_calls;
    n_offers_.fetch_add(1, std::memory_order_release);
    if (n_calls > 0) last_call_ = Clock::now();
    guard.unlock();  // who wakes up wants the lock
    for (std::size_t i = 0; i < n_calls; ++i) wake_.notify_one();
  }

  void withdraw(const std::shared_ptr<Loop>& loop) {
    const std::lock_guard guard(lock_);
    std::erase(open_, loop);
    if (loop->held_up()) pause();
  }

  /// Let loops do without helpers for a while. The lock is held.
  void pause() {
    const Clock::duration now = Clock::now().time_since_epoch();
    if (now < alone_until_.load()) return;
    pause_ = now < calm_from_.load() ? std::min(2 * pause_, kLongestPause) : kShortestPause;
    alone_until_ = now + pause_;
    calm_from_ = now + 2 * pause_;
  }

  bool start() {
#ifndef _WIN32
    // Signals are for the threads of the program.
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
#endif
    bool started = true;
    try {
      std::thread([this] { help(); }).detach();
      ++n_helpers_;
      ++n_idle_;
    } catch (const std::system_error&) {
      started = false;  // no more threads to have: those that are there do all the work
    }
#ifndef _WIN32
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
#endif
    return started;
  }

  void help() {
    inside_loop = true;
    std::unique_lock guard(lock_);
    while (true) {
      if (help_with_one(guard)) continue;
      const std::uint64_t seen = n_offers_;
      const auto offered = [&] { return n_offers_.load(std::memory_order_acquire) != seen; };
      guard.unlock();
      if (Clock::now().time_since_epoch() > calm_from_.load()) spin_until(offered);
      guard.lock();
      if (offered()) continue;
      ++n_asleep_;
      wake_.wait(guard, [this] { return n_called_ > 0; });
      --n_called_;
      // Called long ago: somebody else had the core.
      if (Clock::now() - last_call_ > kAway) pause();
    }
  }

  /// Returns whether there was a loop to help with.
  bool help_with_one(std::unique_lock<std::mutex>& guard) {
    for (const std::shared_ptr<Loop>& open : open_) {
      const int thread = open->join();
      if (thread == 0) continue;
      const std::shared_ptr<Loop> loop = open;
      --n_idle_;
      guard.unlock();
      const Absence absence;
      const Interrupt interrupt([&loop] {
        if (loop->stopped()) throw Stopped{};
      });
      loop->work(thread, [&] { wake_for(*loop); }, [&] { loop->tell_absence(absence); });
      guard.lock();
      ++n_idle_;
      loop->leave(thread);
      return true;
    }
    return false;
  }

  std::mutex lock_;
  std::condition_variable wake_;
  std::vector<std::shared_ptr<Loop>> open_;
  // Idle helpers are asleep, called but not yet up, or about to look for work or to sleep.
  std::size_t n_helpers_ = 0, n_idle_ = 0, n_asleep_ = 0, n_called_ = 0;
  std::atomic<std::uint64_t> n_offers_ = 0;
  Clock::time_point last_call_;  // to those who sleep
  // Since the clock began: when helpers may help again, and when they may wait awake again.
  std::atomic<Clock::duration> alone_until_ = Clock::duration::zero();
  std::atomic<Clock::duration> calm_from_ = Clock::duration::zero();
  Clock::duration pause_ = kShortestPause;
};

/// Never destroyed: its threads may outlive everything else.
std::atomic<ThreadPool*> the_pool = nullptr;

#ifndef _WIN32
/// A forked child has none of its parent's threads, and its copy of the pool may be locked by one
/// of them: it starts with a new one.
const bool forks_are_watched = pthread_atfork(nullptr, nullptr, [] { the_pool = nullptr; }) == 0;
#endif

ThreadPool& pool() {
  ThreadPool* pool = the_pool;
  if (!pool) {
    auto made = std::make_unique<ThreadPool>();
    if (the_pool.compare_exchange_strong(pool, made.get())) pool = made.release();
  }
  return *pool;
}

}  // namespace

void run_loop(std::size_t n_turns, int n_threads, const LoopBody& body) {
  if (n_threads <= 1 || inside_loop) {
    for (std::size_t turn = 0; turn < n_turns; ++turn) {
      checkpoint();
      n_turns += body.call(body.body, turn, 0);
    }
    return;
  }
  ThreadPool& helpers = pool();
  const auto loop = std::make_shared<Loop>(n_turns, n_threads, body);
  inside_loop = true;
  helpers.run(loop);
  inside_loop = false;
  loop->rethrow();
}

}  // namespace hardwood
