#include "hardwood/grow/driver.hpp"

#include <set>
#include <string>

#include "check.hpp"

namespace hardwood::tests {
namespace {

using grow::Order;

struct Open {
  std::size_t number;
  double priority;
  std::size_t n_rows = 1;
};
using Driver = grow::Driver<Open>;

const Case depth_first{"driver: one by one, the newest node is next, whatever it gains", [] {
                         Driver driver(0, Order::kOneByOne);
                         driver.push({1, 5.0});
                         driver.push({2, 1.0});
                         check(that(driver.pop().number) == 2, "the newest");
                         driver.push({3, 0.5});
                         check(that(driver.pop().number) == 3, "the newest again");
                         check(that(driver.pop().number) == 1, "the oldest last");
                         check(!driver.wants_more(), "nothing is open");
                       }};

const Case best_first{"driver: with a limit the largest gain is next, the older node on ties", [] {
                        Driver driver(10, Order::kLevels);
                        driver.push({7, 1.0});
                        driver.push({2, 3.0});
                        driver.push({4, 3.0});
                        check(that(driver.pop().number) == 2, "the older of the two best");
                        driver.push({5, 2.0});
                        check(that(driver.pop().number) == 4, "the other one");
                        check(that(driver.pop().number) == 5, "then the one that came later");
                        check(that(driver.pop().number) == 7, "then the rest");
                      }};

/// Expand a tree of nodes 1, 2n and 2n + 1 below `n_nodes`; the batches, in the order they came.
std::vector<std::vector<std::size_t>> batches(Driver& driver, std::size_t n_nodes, int n_threads) {
  std::vector<std::vector<std::size_t>> seen;
  std::mutex lock;
  driver.push({1, 1.0, n_nodes});
  driver.run(
      n_threads, [] {},
      [&](std::vector<Open> nodes, int, std::vector<Open>& more) {
        const std::lock_guard guard(lock);
        seen.emplace_back();
        for (const Open& node : nodes) {
          seen.back().push_back(node.number);
          for (const std::size_t child : {2 * node.number, 2 * node.number + 1}) {
            if (child < n_nodes) more.push_back({child, 1.0, n_nodes / child});
          }
        }
      });
  return seen;
}

const Case orders{"driver: every order takes every node once", [] {
                    for (const Order order : {Order::kOneByOne, Order::kLevels, Order::kTasks}) {
                      for (const int n_threads : {1, 3}) {
                        Driver driver(0, order);
                        const auto seen = batches(driver, 100, n_threads);
                        std::multiset<std::size_t> numbers;
                        for (const auto& batch : seen) numbers.insert(batch.begin(), batch.end());
                        const std::set<std::size_t> distinct(numbers.begin(), numbers.end());
                        check(numbers.size() == 99 && distinct.size() == 99, "99 nodes, each once");
                        check(that(seen.size()) == (order == Order::kLevels ? 7u : 99u),
                              "all of a level together, or each alone");
                      }
                    }
                  }};

const Case leaves{
    "driver: a limit of k leaves allows k - 1 splits and tells what is left", [] {
      Driver driver(3, Order::kTasks);
      check(!driver.is_full(), "there is room for splits");
      check(that(batches(driver, 100, 2).size()) == 2, "two splits make three leaves");
      check(driver.is_full(), "there is room for none");
      check(that(driver.rest().size()) == 3, "three leaves that could have been split");
    }};

}  // namespace
}  // namespace hardwood::tests
