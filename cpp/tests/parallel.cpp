#include "hardwood/parallel.hpp"

#include <stdexcept>
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

}  // namespace
}  // namespace hardwood::tests
