#include "hardwood/box.hpp"

#include <cmath>
#include <limits>

#include "check.hpp"

namespace hardwood::tests {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

const Case edge_is_where_rounding_crosses{
    "box: edge_of is the smallest double that does not go left once rounded", [] {
      constexpr float kMax = std::numeric_limits<float>::max();
      constexpr float kTiny = std::numeric_limits<float>::denorm_min();
      for (const float threshold : {0.0f, kTiny, -kTiny, 0.5f, 0.7f, std::nextafter(0.7f, 1.0f),
                                    -0.3f, 1.0f, 1e30f, kMax, -kMax}) {
        const double edge = edge_of(threshold);
        check(!goes_left(static_cast<float>(edge), threshold), "the edge itself must not go left");
        check(goes_left(static_cast<float>(std::nextafter(edge, -kInfinity)), threshold),
              "the double below the edge must go left");
      }
    }};

const Case half_open{"box: an interval holds its low end and not its high end", [] {
                       const Interval interval{1.0, 2.0};
                       check(interval.contains(1.0), "low end");
                       check(!interval.contains(2.0), "high end");
                       check(that(interval.nearest(0.0)) == 1.0, "up to the low end");
                       check(that(interval.nearest(3.0)) == std::nextafter(2.0, 0.0),
                             "just below the high end");
                       check((Interval{1.0, 1.0}.empty()), "no double between");
                     }};

const Case closed_ball{"box: a closed ball that touches the low end meets, at the high end not",
                       [] {
                         const Interval interval{1.0, 2.0};
                         const Reach half{0.5, 0.5, -10, 10};
                         check(interval.meets(half, 0.5), "0.5 + 0.5 is the low end");
                         check(!interval.meets(half, 0.5 - 0x1p-53), "one float short");
                         check(!interval.meets(half, 2.5), "2.5 - 0.5 is the high end");
                         check(interval.meets(half, std::nextafter(2.5, 0.0)), "one float inside");
                       }};

}  // namespace
}  // namespace hardwood::tests
