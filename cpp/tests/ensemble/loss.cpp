#include "hardwood/ensemble/loss.hpp"

#include <cmath>
#include <vector>

#include "check.hpp"
#include "hardwood/ensemble/exponential.hpp"

namespace hardwood::tests {
namespace {

const Case exponential_is_close{
    "ensemble: the exponential is right to two units", [] {
      double worst = 0;
      for (float x = -87; x <= 88; x = std::nextafter(x + 1e-4f, 1e9f)) {
        const double truth = std::exp(static_cast<double>(x));
        const double unit = std::ldexp(1.0, std::ilogb(truth) - 23);
        worst = std::max(worst, std::abs(ensemble::exponential(x) - truth) / unit);
      }
      check(that(worst) <= 2, "worst error in units of the last place: " + std::to_string(worst));
      check(that(ensemble::exponential(0)) == 1.0f, "e^0 is 1");
      check(that(ensemble::exponential(-1e30f)) == ensemble::exponential(-87),
            "far below it stays put");
      check(that(ensemble::exponential(1e30f)) == ensemble::exponential(88),
            "far above it stays put");
      check(std::isnan(ensemble::exponential(std::nanf(""))), "NaN stays NaN");
    }};

const Case threads_change_nothing{"ensemble: derivatives do not depend on threads", [] {
                                    const std::size_t n = 40'000, k = 3;
                                    std::vector<float> label(n), margin(n * k);
                                    for (std::size_t i = 0; i < n; ++i)
                                      label[i] = static_cast<float>(i % k);
                                    for (std::size_t i = 0; i < n * k; ++i)
                                      margin[i] = static_cast<float>(i * 37 % 101) / 9 - 5;
                                    const auto run = [&](int n_threads) {
                                      std::vector<float> g(n * k), h(n * k);
                                      ensemble::softmax_derivatives(
                                          label, {margin.data(), n, k},
                                          {{g.data(), n, k}, {h.data(), n, k}}, n_threads);
                                      g.insert(g.end(), h.begin(), h.end());
                                      return g;
                                    };
                                    check(that(run(1)) == run(3), "one thread and three");
                                  }};

const Case refused{"ensemble: labels and shapes that do not fit are refused", [] {
                     check_refused(
                         [] {
                           const std::vector<float> label{0, 3}, margin(6);
                           std::vector<float> g(6), h(6);
                           ensemble::softmax_derivatives(label, {margin.data(), 2, 3},
                                                         {{g.data(), 2, 3}, {h.data(), 2, 3}}, 1);
                         },
                         "label must be from 0 to 2, got 3");
                     check_refused(
                         [] {
                           const std::vector<float> label{0, 1}, margin(2);
                           std::vector<float> g(2), h(2);
                           ensemble::logistic_derivatives(label, {margin.data(), 2, 1},
                                                          {{g.data(), 2, 1}, {h.data(), 1, 1}}, 1);
                         },
                         "hessian must be 2 x 1 like the margin, got 1 x 1");
                   }};

}  // namespace
}  // namespace hardwood::tests
