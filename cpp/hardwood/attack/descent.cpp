#include "hardwood/attack/descent.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <memory>

#include "hardwood/attack/local_search.hpp"
#include "hardwood/attack/near_trees.hpp"
#include "hardwood/attack/one_change.hpp"
#include "hardwood/cells/point_search.hpp"
#include "hardwood/parallel.hpp"
#include "hardwood/verify/distance.hpp"

namespace hardwood::attack {
namespace {

using cells::Ball;
using cells::Ensemble;
using cells::Norm;
using cells::Question;

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr int kClimbs = 8;             // rounds of coordinate ascent
constexpr int kHalvings = 8;           // of the bracket of radii
constexpr int kChances = 1;            // of a second start, once a try has failed
constexpr double kClose = 0.02;        // relative: a bracket that is not worth halving
constexpr double kShare = 0.25;        // of the missing value: room for a first try
constexpr double kFirstGrowth = 1.15;  // of the radius, squared from one try to the next
constexpr double kLargestGrowth = 1e3;
constexpr double kLeastRadius = 1e-12;  // of a first try where nothing seems to be missing
constexpr double kCutGrowth = 1.1;      // the trees are cut for a few tries at once

// Local search in the norms that sum up steps.
constexpr std::array kWider{1.5, 2.2, 3.3};  // radii of balls to start from, relative
constexpr double kFewestMoves = 200;
constexpr double kMovesALeafInOne = 0.9;  // of the cut: few long steps are harder to find
constexpr double kMovesALeafInTwo = 0.65;
constexpr double kMostMoves = 6000;

/// All about one row; memory is kept from row to row.
class Descent : cells::PointSearch<NearTrees> {
 public:
  Descent(const Ensemble& ensemble, const Watch& watch)
      : ensemble_(ensemble),
        watch_(watch),
        near_(ensemble),
        search_(
            [this](const Moves& moves) {
              point_.assign(ball_->home().begin(), ball_->home().end());
              moves.write(point_);
              accept();
            },
            watch) {
    allowed_.resize(ensemble.n_features());
  }

  bool attack(const Ball& ball, std::int32_t y) {
    ball_ = &ball;
    y_ = y;
    upper_ = kInfinity;
    example_of_ = nullptr;
    point_.assign(ball.home().begin(), ball.home().end());
    const std::vector<Question> questions = ensemble_.questions({y});
    for (const Question& question : questions) {
      if (watch_.over()) break;
      const auto members = ensemble_.members(question);
      asked_ = &question;
      const double before = upper_;
      const std::vector<std::int32_t> other = example_;
      const Question* other_of = example_of_;
      for (const bool replays : {false, true}) {
        // Our sums are not the model's: where the two disagree, every point is tried on the model.
        replays_ = replays;
        nearest(question, members);
        if (ball.norm() != Norm::kInf && upper_ < kInfinity) cheapest(question, members);
        if (upper_ == before || fools(example_)) break;
        upper_ = before;
        example_ = other;
        example_of_ = other_of;
      }
    }
    return upper_ < kInfinity;
  }
  const std::vector<std::int32_t>& example() const { return example_; }

 private:
  void nearest(const Question& question, std::span<const Ensemble::Member> members) {
    const double bar = ball_->norm() == Norm::kInf ? ball_->step_below(upper_) : kInfinity;
    if (bar < 0) return;  // no threshold is nearer than the example
    const double plain = plain_radius(question, members, bar);
    if (plain == kInfinity) return;
    double cut = -1;
    double proven = plain;
    double found = kInfinity;
    double growth = kFirstGrowth;
    for (double radius = likely_ > 0 ? likely_ : kLeastRadius;; radius *= growth) {
      if (watch_.over()) return;
      radius = std::min(radius, bar);
      if (radius > cut) {
        cut = std::min(kCutGrowth * radius, bar);
        near_.build(*ball_, question, members, cut);
      }
      if (attempt(radius)) break;
      proven = radius;
      if (radius >= bar) return;
      growth = growth > kLargestGrowth ? kInfinity : growth * growth;
    }
    kept_ = point_;
    found = largest_step(near_);
    int chances = kChances;
    for (int k = 0; k < kHalvings && found - proven > kClose * found && !watch_.over(); ++k) {
      const double middle = (proven + found) / 2;
      if (attempt(middle) || (--chances >= 0 && again())) {
        kept_ = point_;
        found = largest_step(near_);
      } else {
        proven = middle;
      }
    }
    point_ = kept_;
    value_ = near_.value(point_);
    pull_back(near_, [this] { return value_ >= near_.enough() && accept() && !watch_.over(); });
  }

  /// The smallest radius at which the trees' best leaves, each on its own, would suffice.
  double plain_radius(const Question& question, std::span<const Ensemble::Member> members,
                      double bar) {
    // Look around as far as the last rows needed it; the answer does not depend on it.
    for (double radius = std::min(guess_, bar);; radius = std::min(4 * radius, bar)) {
      if (radius > 1e3 * guess_) radius = bar;
      const double plain = near_.plain_radius(kShare, likely_, *ball_, question, members, radius);
      if (plain < kInfinity) {
        guess_ = 0.8 * guess_ + 0.4 * std::max(plain, 1e-9);
        const double within = std::min(NearTrees::kWithin * plain, bar);
        if (radius < within) near_.plain_radius(kShare, likely_, *ball_, question, members, within);
        return plain;
      }
      if (radius >= bar) return plain;
    }
  }

  /// Look for an example within a radius; if there is one, point_ is a local best.
  bool attempt(double radius) {
    vote_within(radius);
    return climb(near_, kClimbs) && accept();
  }

  /// Look once more, from the best example so far, drawn into the ball.
  bool again() {
    point_ = kept_;
    for (const std::size_t f : near_.features()) {
      point_[f] = std::clamp(point_[f], allowed_[f].lo, allowed_[f].hi);
    }
    value_ = near_.value(point_);
    return climb(near_, kClimbs) && accept();
  }

  /// Every tree votes for the cells of its best leaf, with what it would lose with the second.
  void vote_within(double radius) {
    stay_within(near_, radius);
    point_.assign(ball_->home().begin(), ball_->home().end());
    vote(near_, [&](auto&& cast) {
      for (const NearTrees::Tree& tree : near_.trees) {
        const NearTrees::Leaf* best = nullptr;
        double second = -kInfinity;
        for (std::int32_t k = 0; k < tree.n_leaves; ++k) {
          const NearTrees::Leaf& leaf = near_.leaves[static_cast<std::size_t>(tree.leaf + k)];
          if (leaf.step > radius) continue;
          if (best == nullptr || leaf.value > best->value) {
            if (best != nullptr) second = best->value;
            best = &leaf;
          } else {
            second = std::max(second, leaf.value);
          }
        }
        if (second == -kInfinity) continue;
        near_.box_of(*best, box_);
        for (const NearTrees::Side& side : box_) {
          cast(static_cast<std::size_t>(side.feature), side.cells, best->value - second);
        }
      }
    });
  }

  bool fools(const std::vector<std::int32_t>& point) {
    return ensemble_.fooled({y_}, point, margin_);
  }

  /// Keep point_ if it is the nearest yet; with `replays_` only if it fools the model itself.
  bool accept() {
    if (replays_ && !fools(point_)) return false;
    const double length = ball_->length(point_);
    if (length < upper_) {
      upper_ = length;
      example_ = point_;
      example_of_ = asked_;
    }
    return true;
  }

  /// Make the example cheaper, in a norm that sums up steps.
  void cheapest(const Question& question, std::span<const Ensemble::Member> members) {
    point_ = example_;
    const double reach = largest_step(near_);
    if (example_of_ == &question) {
      search_.build(near_, *ball_, cells::unit_of(upper_));
      search_.shed_from(example_);
    }
    for (const double wider : kWider) {
      const double radius = wider * reach;
      if (radius > upper_ || watch_.over()) break;
      near_.build(*ball_, question, members, radius);
      vote_within(radius);
      search_.build(near_, *ball_, cells::unit_of(upper_));
      search_.climb_from(point_);
    }
    if (watch_.over()) return;
    cut_to_example(question, members);
    search_.repair_home(false);
    search_.repair_home(true);
    if (example_of_ != &question || watch_.over()) return;
    cut_to_example(question, members);
    const double a_leaf = ball_->norm() == Norm::kOne ? kMovesALeafInOne : kMovesALeafInTwo;
    const double moves = kFewestMoves + a_leaf * static_cast<double>(near_.leaves.size());
    search_.iterate(example_, static_cast<int>(std::min(moves, kMostMoves)));
  }

  /// Cut the trees to what costs no more than the example.
  void cut_to_example(const Question& question, std::span<const Ensemble::Member> members) {
    const double unit = cells::unit_of(upper_);
    double cost = 0;
    for (std::size_t f = 0; f < example_.size(); ++f) {
      if (example_[f] != ball_->home()[f]) {
        cost += cells::cost_of(ball_->norm(), ball_->step(f, example_[f]), unit);
      }
    }
    near_.build(*ball_, question, members, upper_, cost * (1 + 1e-9), unit);
    search_.build(near_, *ball_, unit);
  }

  const Ensemble& ensemble_;
  const Watch& watch_;
  const Ball* ball_ = nullptr;
  std::int32_t y_ = 0;
  NearTrees near_;
  const Question* asked_ = nullptr;
  const Question* example_of_ = nullptr;  // the question that example_ answers
  double likely_ = 0;
  double guess_ = 0.05;
  double upper_ = kInfinity;
  bool replays_ = false;
  std::vector<std::int32_t> kept_;
  std::vector<std::int32_t> example_;
  std::vector<NearTrees::Side> box_;
  std::vector<double> margin_;
  LocalSearch search_;
};

}  // namespace

std::vector<double> descent(const model::Trees& trees, Matrix<const double> x,
                            std::span<const std::int32_t> y, const cells::Budget& budget,
                            int n_threads, Watch& watch) {
  if (trees.has_categories() || budget.max_changes > 0 || std::ranges::count(budget.blank, 1) > 0) {
    const verify::Limits limits{kInfinity, n_threads};
    return verify::near_in_ensemble(trees, x, y, budget, limits, watch).x_adv;
  }
  const Ensemble ensemble(trees, budget.reach);
  std::vector<double> x_adv(x.n_rows * x.n_cols, std::numeric_limits<double>::quiet_NaN());
  const Matrix<double> out{x_adv.data(), x.n_rows, x.n_cols};
  std::vector<std::unique_ptr<Descent>> searches(static_cast<std::size_t>(n_threads));
  parallel_for(x.n_rows, n_threads, [&](std::size_t i, int thread) {
    if (watch.over()) return;
    auto& search = searches[static_cast<std::size_t>(thread)];
    if (!search) search = std::make_unique<Descent>(ensemble, watch);
    const Ball ball(ensemble, x.row(i), budget);
    if (search->attack(ball, y[i])) write_point(ball, search->example(), out.row(i));
    ++watch.n_done;
  });
  return x_adv;
}

}  // namespace hardwood::attack
