#include "hardwood/ambiguity.hpp"

#include <cmath>

#include "check.hpp"

namespace hardwood::tests {
namespace {

constexpr double kFar = 1e30;

bool ambiguous(const Reach& reach, double x, float threshold) {
  return !sure_left(reach, x, threshold) && !sure_right(reach, x, threshold);
}

float before(float x) { return std::nextafter(x, -INFINITY); }
float after(float x) { return std::nextafter(x, INFINITY); }

const Case half_open{"ambiguity: t - eps is in the set, t + eps is not", [] {
                       const Reach reach{0.25, 0.25, -kFar, kFar};
                       const float t = 0.5f;
                       check(ambiguous(reach, 0.25, t), "t - eps can be moved onto t");
                       check(ambiguous(reach, after(0.25f), t), "one float above t - eps");
                       check(sure_left(reach, 0.5 - 0.25 - 0x1p-25, t),
                             "its highest value is the float below t");
                       check(sure_right(reach, 0.75, t), "t + eps cannot get below t");
                       check(sure_right(reach, after(0.75f), t), "one float above t + eps");
                       check(ambiguous(reach, before(0.75f), t), "one float below t + eps");
                     }};

const Case rounded{"ambiguity: the ends of the ball are rounded as the model rounds", [] {
                     const Reach reach{0.25, 0.25, -kFar, kFar};
                     // Highest value 0.5 - 2^-26: below t, but halfway to the float below and
                     // rounded up to t.
                     check(ambiguous(reach, before(0.25f), 0.5f),
                           "a value that rounds to t does not go left");
                     check(sure_left(reach, double{before(0.25f)} - 0x1p-53, 0.5f),
                           "a little less rounds down and goes left");
                   }};

const Case nobody{"ambiguity: without a step nothing is ambiguous, not even on the threshold", [] {
                    const Reach still{0, 0, -kFar, kFar};
                    for (const float x : {before(0.3f), 0.3f, after(0.3f)}) {
                      check(!ambiguous(still, x, 0.3f), "every row is sure");
                      check(that(sure_left(still, x, 0.3f)) == (x < 0.3f), "and goes its own way");
                    }
                  }};

const Case one_sided{"ambiguity: steps up make the rows below ambiguous, a valid range stops them",
                     [] {
                       const Reach up{0, 0.25, -kFar, kFar};
                       check(ambiguous(up, 0.25, 0.5f), "t - eps can step up to t");
                       check(sure_right(up, 0.5, 0.5f), "nothing steps down from t");
                       const Reach capped{0.25, 0.25, 0.5, before(0.5f)};
                       check(sure_left(capped, 0.25, 0.5f), "high is below t");
                       check(sure_right(capped, 0.625, 0.5f), "low is on t");
                     }};

}  // namespace
}  // namespace hardwood::tests
