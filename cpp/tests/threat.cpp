#include "hardwood/threat.hpp"

#include <cmath>
#include <limits>

#include "check.hpp"

namespace hardwood::tests {
namespace {

constexpr double kFar = 1e30;
constexpr double kInfinity = std::numeric_limits<double>::infinity();

const Case shares{"threat: shares are of |x|, and of nothing where x is 0", [] {
                    const Reach reach{0, 0, -kFar, kFar, 0.25, 0.5};
                    check(reach.lowest(4) == 3 && reach.highest(4) == 6, "4 - 1 and 4 + 2");
                    check(reach.lowest(-4) == -5 && reach.highest(-4) == -2, "-4 - 1 and -4 + 2");
                    const Reach any{0, 0, -kFar, kFar, kInfinity, kInfinity};
                    check(any.lowest(0) == 0 && any.highest(0) == 0, "0 has no share");
                    check(any.lowest(1) == -kFar && any.highest(1) == kFar, "the range is left");
                    check(std::isnan(any.lowest(NAN)), "a missing value stays missing");
                  }};

const Case whole{"threat: whole numbers inside, and x itself", [] {
                   const Reach reach{0.75, 0.75, -1.5, kFar, 0, 0, true};
                   check(reach.lowest(3) == 3 && reach.highest(3) == 3, "no whole number near 3");
                   check(reach.lowest(2.5) == 2 && reach.highest(2.5) == 3, "2 and 3 near 2.5");
                   const Reach wide{5, 5, -1.5, 4.5, 0, 0, true};
                   check(wide.lowest(0) == -1 && wide.highest(0) == 4, "whole inside the range");
                   check(wide.highest(5) == 5 && wide.lowest(5) == 0,
                         "a row outside may come back");
                 }};

const Case at_rest{"threat: at rest nothing moves", [] {
                     const Reach reach = Reach{1, 2, -kFar, 4, 0.5, 0.5, true}.still();
                     check(reach.lowest(2.5) == 2.5 && reach.highest(2.5) == 2.5, "stays");
                     check(reach.high == 4, "the range stays, too");
                   }};

}  // namespace
}  // namespace hardwood::tests
