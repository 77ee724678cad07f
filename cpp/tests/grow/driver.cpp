#include "hardwood/grow/driver.hpp"

#include "check.hpp"

namespace hardwood::tests {
namespace {

using grow::Driver;

const Case depth_first{"driver: without a limit the newest node is next, whatever it gains", [] {
                         Driver driver(0);
                         driver.push(1, 5.0);
                         driver.push(2, 1.0);
                         check(driver.pop() == 2, "the newest");
                         driver.push(3, 0.5);
                         check(driver.pop() == 3, "the newest again");
                         check(driver.pop() == 1, "the oldest last");
                         check(!driver.wants_more(), "nothing is open");
                       }};

const Case best_first{"driver: with a limit the largest gain is next, the older node on ties", [] {
                        Driver driver(10);
                        driver.push(7, 1.0);
                        driver.push(2, 3.0);
                        driver.push(4, 3.0);
                        check(driver.pop() == 2, "the older of the two best");
                        driver.push(5, 2.0);
                        check(driver.pop() == 4, "the other one");
                        check(driver.pop() == 5, "then the one that came later");
                        check(driver.pop() == 7, "then the rest");
                      }};

const Case leaves{"driver: a limit of k leaves allows k - 1 splits", [] {
                    Driver driver(3);
                    for (std::size_t node = 0; node < 5; ++node) driver.push(node, 1.0);
                    int n_splits = 0;
                    for (; driver.wants_more(); ++n_splits) driver.pop();
                    check(n_splits == 2, "two splits make three leaves");
                  }};

}  // namespace
}  // namespace hardwood::tests
