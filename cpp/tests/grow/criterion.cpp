#include "hardwood/grow/criterion.hpp"

#include <cmath>
#include <random>

#include "check.hpp"

namespace hardwood::tests {
namespace {

using namespace hardwood::grow;

constexpr double kAnyGain = -1;  // as `best`: answer exactly
using Pair = std::array<double, 2>;

bool close(double a, double b) { return std::abs(a - b) < 1e-12; }

const Case straddle{
    "criterion: the three rules where Algorithm 3 misses the minimum", [] {
      const Pair total{2, 5}, sure{0, 1}, possible{1, 1};
      const double paper = TwoClassesPaper<Entropy>(total).robust_gain(sure, sure, possible, 0);
      check(close(paper, Entropy::gain(Pair{0, 1}, total)), "Algorithm 3 leaves the row right");
      check(that(std::abs(paper - 0.0760)) < 5e-5, "gain .0760");
      check(that(std::abs(Entropy::gain(Pair{1, 1}, total) - 0.0617)) < 5e-5,
            "the other has .0617");
      const double exact = TwoClasses<Entropy>(total).robust_gain(sure, sure, possible, 0);
      check(that(exact) == 0, "with divided rows 2/5 of a row voids the split");
    }};

template <class Impurity>
void two_ways_agree() {
  const int n0_all = 4, n1_all = 3;
  const Pair total{n0_all, n1_all};
  const TwoClasses<Impurity> two(total);
  const ManyClasses<Impurity> many(total);
  for (int a0 = 0; a0 <= n0_all; ++a0)
    for (int b0 = a0; b0 <= n0_all; ++b0)
      for (int a1 = 0; a1 <= n1_all; ++a1)
        for (int b1 = a1; b1 <= n1_all; ++b1) {
          const Pair sure{double(a0), double(a1)}, possible{double(b0), double(b1)};
          const double found = two.robust_gain(sure, sure, possible, kAnyGain);
          const double other = many.robust_gain(sure, sure, possible, kAnyGain);
          check(close(found, other), "the rule for any number of classes, on two");
          bool void_point = false;
          for (double share = 0; share <= 1; share += 1.0 / 12) {  // 12: all ratios of 3 and 4
            void_point |= a0 <= share * n0_all + 1e-9 && share * n0_all - 1e-9 <= b0 &&
                          a1 <= share * n1_all + 1e-9 && share * n1_all - 1e-9 <= b1;
          }
          check(that(found == 0) == void_point,
                "zero where the box meets the line, and only there");
          for (int n0 = a0; n0 <= b0; ++n0)
            for (int n1 = a1; n1 <= b1; ++n1)
              check(that(found) <= Impurity::gain(Pair{double(n0), double(n1)}, total) + 1e-12,
                    "no whole rows do worse");
        }
}

const Case two_classes{"criterion: two classes, every box of a small node", [] {
                         two_ways_agree<Entropy>();
                         two_ways_agree<Gini>();
                       }};

/// Boxes of four classes, some thin, some of classes that are not there.
template <class Visit>
void random_boxes(Visit&& visit) {
  std::mt19937 random(1);
  for (int i = 0; i < 2000; ++i) {
    std::vector<double> sure(4), plain(4), possible(4), total(4);
    double all = 0;
    for (std::size_t k = 0; k < 4; ++k) {
      const auto draw = [&](double from, double to) {
        return from + static_cast<double>(random() % (static_cast<unsigned>(to - from) + 1));
      };
      total[k] = draw(0, 12);
      sure[k] = draw(0, total[k]);
      plain[k] = draw(sure[k], std::min(total[k], sure[k] + 2));
      possible[k] = draw(plain[k], std::min(total[k], plain[k] + 2));
      all += total[k];
    }
    if (all > 0) visit(sure, plain, possible, total);
  }
}

template <class Impurity>
void is_a_minimum() {
  std::mt19937 random(2);
  std::uniform_real_distribution<double> share(0, 1);
  random_boxes([&](const auto& sure, const auto& plain, const auto& possible, const auto& total) {
    const double found = ManyClasses<Impurity>(total).robust_gain(sure, plain, possible, kAnyGain);
    check(found >= 0 && found <= Impurity::gain(plain, total) + 1e-12,
          "never above the plain gain");
    for (int i = 0; i < 50; ++i) {
      std::vector<double> n(4);
      for (std::size_t k = 0; k < 4; ++k) n[k] = std::lerp(sure[k], possible[k], share(random));
      check(that(found) <= Impurity::gain(n, total) + 1e-12, "no point of the box does worse");
    }
  });
}

const Case many_classes{"criterion: many classes, no point of the box is below the answer", [] {
                          is_a_minimum<Entropy>();
                          is_a_minimum<Gini>();
                        }};

template <class Impurity>
void answers_do_not_depend_on_best() {
  random_boxes([](const auto& sure, const auto& plain, const auto& possible, const auto& total) {
    const ManyClasses<Impurity> criterion(total);
    const double exact = criterion.robust_gain(sure, plain, possible, kAnyGain);
    for (const double best : {0.0, exact / 2, std::nextafter(exact, 0.0), exact, exact * 1.5 + 0.1,
                              Impurity::gain(plain, total), Impurity::gain(sure, total)}) {
      const double found = criterion.robust_gain(sure, plain, possible, best);
      check(exact > best ? found == exact : found <= best, "the same answer, bit for bit");
    }
  });
}

const Case best{"criterion: what is known to be beaten changes no answer that beats it", [] {
                  answers_do_not_depend_on_best<Entropy>();
                  answers_do_not_depend_on_best<Gini>();
                }};

}  // namespace
}  // namespace hardwood::tests
