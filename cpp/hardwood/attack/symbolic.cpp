#include "hardwood/attack/symbolic.hpp"

#include <cmath>
#include <limits>
#include <memory>

#include "hardwood/attack/one_change.hpp"
#include "hardwood/parallel.hpp"

namespace hardwood::attack {
namespace {

using cells::Ball;
using cells::Ensemble;
using cells::Question;

constexpr double kNoise = 1e-12;

class Symbolic {
 public:
  explicit Symbolic(const Ensemble& ensemble) : ensemble_(ensemble), changes_(ensemble) {}

  bool attack(const Ball& ball, std::int32_t y, const Watch& watch,
              std::vector<std::int32_t>& point) {
    point.assign(ball.home().begin(), ball.home().end());
    double before = std::numeric_limits<double>::lowest();
    while (!changes_.fools(point, y)) {
      if (watch.over()) return false;
      const Move move = best_move(ball, y, point);
      // Every move lifts the best rival by more than rounding, so no point comes twice.
      if (!(move.lead > before + kNoise * (1 + std::abs(before)))) return false;
      before = move.lead;
      point[move.feature] = move.cell;
    }
    for (std::size_t f = 0; f < point.size(); ++f) {
      const std::int32_t cell = point[f];
      if (cell == ball.home()[f]) continue;
      point[f] = ball.home()[f];
      if (!changes_.fools(point, y)) point[f] = cell;
    }
    return true;
  }

 private:
  struct Move {
    double lead = -std::numeric_limits<double>::infinity();
    double step = 0;
    std::size_t feature = 0;
    std::int32_t cell = 0;
  };

  static void take(Move& best, const Move& move) {
    if (move.lead > best.lead || (move.lead == best.lead && move.step < best.step)) best = move;
  }

  Move best_move(const Ball& ball, std::int32_t y, const std::vector<std::int32_t>& point) {
    Move best;
    const int n_left = ball.max_changes() > 0 ? ball.max_changes() - ball.n_changes(point) : 1;
    for (const Question& question : ensemble_.questions({y})) {
      // A tie fools only where the rival comes first.
      const double tie = question.strict ? kNoise : 0;
      const double lead = changes_.read(question, ball, point) - tie;
      for (std::size_t f = 0; f < point.size(); ++f) {
        const bool still = point[f] == ball.home()[f];
        if (ball.home()[f] == cells::kMissing || (still && n_left == 0)) continue;
        if (ball.has_places(f)) {
          trial_ = point;
          for (const Ball::Place& place : ball.places(f)) {
            if (place.cell == point[f]) continue;
            trial_[f] = place.cell;
            take(best, {changes_.sum(question, trial_) - tie, place.step, f, place.cell});
          }
          continue;
        }
        const std::span<const double> gain = changes_.gain(f);
        for (std::size_t c = 0; c < gain.size(); ++c) {
          const auto cell = static_cast<std::int32_t>(c);
          const double step = ball.step(f, cell);
          if (step == std::numeric_limits<double>::infinity() || cell == point[f]) continue;
          take(best, {lead + gain[c], step, f, cell});
        }
      }
    }
    return best;
  }

  const Ensemble& ensemble_;
  OneChange changes_;
  std::vector<std::int32_t> trial_;
};

}  // namespace

std::vector<double> symbolic(const model::Trees& trees, Matrix<const double> x,
                             std::span<const std::int32_t> y, const cells::Budget& budget,
                             int n_threads, Watch& watch) {
  const Ensemble ensemble(trees, budget.reach);
  std::vector<double> x_adv(x.n_rows * x.n_cols, std::numeric_limits<double>::quiet_NaN());
  const Matrix<double> out{x_adv.data(), x.n_rows, x.n_cols};
  std::vector<std::unique_ptr<Symbolic>> searches(static_cast<std::size_t>(n_threads));
  parallel_for(x.n_rows, n_threads, [&](std::size_t i, int thread) {
    if (watch.over()) return;
    auto& search = searches[static_cast<std::size_t>(thread)];
    if (!search) search = std::make_unique<Symbolic>(ensemble);
    const Ball ball(ensemble, x.row(i), budget);
    std::vector<std::int32_t> point;
    if (search->attack(ball, y[i], watch, point)) write_point(ball, point, out.row(i));
    ++watch.n_done;
  });
  return x_adv;
}

}  // namespace hardwood::attack
