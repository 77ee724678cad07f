#include "hardwood/parallel.hpp"

#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <numeric>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "check.hpp"

namespace hardwood::tests {
namespace {

const Case every_index_once{
    "parallel: every index once, on threads that have numbers of their own", [] {
      for (const int n_threads : {1, 2, 7}) {
        for (const std::size_t n : {0u, 1u, 2u, 1000u}) {
          std::vector<int> calls(n);
          bool numbered = true;
          parallel_for(n, n_threads, [&](std::size_t i, int thread) {
            ++calls[i];
            if (thread < 0 || thread >= n_threads) numbered = false;
          });
          check(calls == std::vector<int>(n, 1), "an index was left out or done twice");
          check(numbered, "a thread's number is out of range");
        }
      }
    }};

const Case blocks_cover{"parallel: blocks cover the range, the last one cut", [] {
                          std::vector<int> calls(10);
                          parallel_blocks(10, 4, 3, [&](std::size_t begin, std::size_t end, int) {
                            for (std::size_t i = begin; i < end; ++i) ++calls[i];
                          });
                          check(calls == std::vector<int>(10, 1), "blocks must cover [0, 10)");
                        }};

const Case errors_come_out{"parallel: an exception leaves the loop on the calling thread", [] {
                             for (const int n_threads : {1, 2, 7}) {
                               bool caught = false;
                               try {
                                 parallel_for(1000, n_threads, [](std::size_t i, int) {
                                   if (i == 37) throw std::runtime_error("37");
                                 });
                               } catch (const std::runtime_error& error) {
                                 caught = std::string(error.what()) == "37";
                               }
                               check(caught, "the loop must throw what its body threw");
                             }
                           }};

const Case tasks_make_tasks{
    "parallel: tasks that make tasks are all done", [] {
      for (const int n_threads : {1, 2, 7}) {
        for (int turn = 0; turn < 50; ++turn) {
          std::atomic<int> n_calls = 0;
          parallel_tasks(std::vector<int>{3, 5}, n_threads,
                         [&](int depth, int thread, std::vector<int>& more) {
                           ++n_calls;
                           if (thread < 0 || thread >= n_threads) n_calls = -1'000'000;
                           if (depth > 0) more.insert(more.end(), {depth - 1, depth - 1});
                         });
          check(that(n_calls) == 15 + 63, "two full binary trees, of depth 3 and 5");
        }
      }
      parallel_tasks(std::vector<int>{}, 2,
                     [](int, int, std::vector<int>&) { check(false, "there is no task"); });
    }};

const Case a_failing_task_ends_all{
    "parallel: a task that throws ends all tasks", [] {
      for (const int n_threads : {1, 2, 7}) {
        bool caught = false;
        try {
          parallel_tasks(std::vector<int>{0}, n_threads, [](int n, int, std::vector<int>& more) {
            if (n == 100) throw std::runtime_error("100");
            more.insert(more.end(), {n + 1, n + 1});  // without an end otherwise
          });
        } catch (const std::runtime_error& error) {
          caught = std::string(error.what()) == "100";
        }
        check(caught, "the loop must throw what its task threw");
      }
    }};

const Case loops_in_loops{"parallel: a loop inside a loop stays on its thread", [] {
                            std::vector<int> calls(40 * 50);
                            std::atomic<bool> stays = true;
                            parallel_for(40, 4, [&](std::size_t i, int) {
                              const auto here = std::this_thread::get_id();
                              parallel_for(50, 4, [&](std::size_t j, int thread) {
                                ++calls[i * 50 + j];
                                if (thread != 0 || std::this_thread::get_id() != here)
                                  stays = false;
                              });
                            });
                            check(calls == std::vector<int>(calls.size(), 1), "every pair once");
                            check(stays, "the inner loop must not leave its thread");
                          }};

const Case many_callers{"parallel: several threads may run loops at once", [] {
                          std::atomic<int> n_wrong = 0;
                          std::vector<std::thread> callers;
                          for (int caller = 0; caller < 4; ++caller) {
                            callers.emplace_back([&] {
                              for (int turn = 0; turn < 500; ++turn) {
                                std::vector<int> calls(20);
                                parallel_for(20, 3, [&](std::size_t i, int) { ++calls[i]; });
                                if (std::accumulate(calls.begin(), calls.end(), 0) != 20) ++n_wrong;
                              }
                            });
                          }
                          for (std::thread& caller : callers) caller.join();
                          check(that(n_wrong) == 0, "a loop lost turns");
                        }};

const Case any_number_of_threads{
    "parallel: a million threads are not started", [] {
      std::vector<int> calls(10'000);
      parallel_for(calls.size(), 1'000'000, [&](std::size_t i, int) { ++calls[i]; });
      check(calls == std::vector<int>(calls.size(), 1), "every index once");
    }};

const Case nobody_waits_for_who_has_not_begun{
    "parallel: the caller goes through all turns that nobody else takes", [] {
      // The only helper is held in a turn until all others are done.
      std::atomic<int> n_done = 0;
      std::atomic<bool> held = false, patient = true;
      parallel_for(20, 2, [&](std::size_t, int thread) {
        if (thread == 1 && !held.exchange(true)) {
          const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
          while (n_done < 19 && std::chrono::steady_clock::now() < end) {
            std::this_thread::sleep_for(std::chrono::milliseconds(1));
          }
          patient = n_done == 19;
        }
        ++n_done;
      });
      check(patient, "the other turns must not wait for the helper");
    }};

const Case interrupts{"parallel: an interrupt ends a loop, on every thread", [] {
                        for (const int n_threads : {1, 3}) {
                          std::atomic<int> n_turns = 0;
                          bool caught = false;
                          try {
                            const Interrupt interrupt([] { throw std::runtime_error("enough"); });
                            parallel_for(100'000, n_threads, [&](std::size_t, int) {
                              ++n_turns;
                              std::this_thread::sleep_for(std::chrono::milliseconds(5));
                            });
                          } catch (const std::runtime_error& error) {
                            caught = std::string(error.what()) == "enough";
                          }
                          check(caught, "what the interrupt throws must come out");
                          check(that(n_turns) < 10'000, "the loop must end early");
                          check(that(Interrupt::current()) == nullptr,
                                "the interrupt must be gone");
                        }
                      }};

const Case long_turns_hear_interrupts{
    "parallel: a helper in a long turn hears that the loop is stopped", [] {
      bool caught = false;
      std::atomic<int> n_stopped = 0;
      try {
        const Interrupt interrupt([] { throw std::runtime_error("enough"); });
        parallel_for(2, 2, [&](std::size_t, int) {
          try {
            while (true) {
              checkpoint();
              std::this_thread::sleep_for(std::chrono::milliseconds(5));
            }
          } catch (...) {
            ++n_stopped;
            throw;
          }
        });
      } catch (const std::runtime_error& error) {
        caught = std::string(error.what()) == "enough";
      }
      check(caught && n_stopped >= 1, "every turn must come to an end");
    }};

// The thread sanitizer does not support threads in a forked child.
#ifndef __SANITIZE_THREAD__
const Case forks{"parallel: a forked child has helpers of its own", [] {
                   std::atomic<int> sum = 0;
                   parallel_for(100, 3, [&](std::size_t i, int) { sum += static_cast<int>(i); });
                   const pid_t child = fork();
                   if (child == 0) {
                     alarm(60);  // a child that hangs ends, and the parent sees it
                     std::atomic<int> again = 0;
                     for (int turn = 0; turn < 100; ++turn) {
                       parallel_for(100, 3, [&](std::size_t, int) { ++again; });
                     }
                     _exit(again == 10'000 ? 0 : 1);
                   }
                   int status = -1;
                   waitpid(child, &status, 0);
                   check(WIFEXITED(status) && WEXITSTATUS(status) == 0, "the child must return");
                 }};
#endif

}  // namespace
}  // namespace hardwood::tests
