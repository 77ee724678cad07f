#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <vector>

#include "hardwood/cells/point_search.hpp"
#include "hardwood/verify/cut_trees.hpp"
#include "hardwood/verify/messages.hpp"
#include "hardwood/watch.hpp"

namespace hardwood::verify {

/// When to give up: at a moment, or because somebody asks.
class Clock {
 public:
  Clock(Time deadline, const std::atomic<bool>& stop) : deadline_(deadline), stop_(stop) {}
  bool over() const {
    return stop_.load(std::memory_order_relaxed) || std::chrono::steady_clock::now() >= deadline_;
  }

 private:
  Time deadline_;
  const std::atomic<bool>& stop_;
};

enum class Answer : std::uint8_t {
  kNone,      ///< proven: nothing in the cut fools the model
  kFound,     ///< an example, replayed in the model's own arithmetic
  kOpen,      ///< neither, within the scope that was asked for
  kTime,      ///< the clock stopped it
  kRounding,  ///< too many points lie within the rounding of the model's own sum
};

/// How much of a search: without branching, or until it is decided.
enum class Scope : std::uint8_t { kRoot, kFull };

/// A point as the model's cell of every feature.
using Point = std::vector<std::int32_t>;

/// Decides whether a cut holds a point that fools the model: bound, try, branch.
class Search : protected cells::PointSearch<CutTrees> {
 public:
  /// `property` may change between questions.
  Search(const Ensemble& ensemble, const Ball& ball, const Property& property, const Clock& clock)
      : ensemble_(ensemble),
        ball_(ball),
        property_(property),
        clock_(clock),
        margin_(ensemble.n_outputs()) {}

  /// `state` is where to start from, and is spent; on kFound the example is in `found()`. Full
  /// scope may merge factors of the cut.
  Answer decide(Cut& cut, State& state, Scope scope);

  const Point& found() const { return found_; }

  /// Keep only the cells that a step of at most `radius` reaches.
  static void restrict(const Cut& cut, State& state, double radius);

  /// The first output of a point, by the model itself.
  double output(const Point& point) {
    ensemble_.margin(point, margin_);
    return margin_[0];
  }
  /// Whether a point violates the property, by the model itself.
  bool fools(const Point& point) { return ensemble_.fooled(property_, point, margin_); }

 protected:
  struct Span {
    double lo;
    double hi;
  };
  struct Branch {
    std::size_t feature;
    std::int32_t cell;  ///< the first cell of the upper half
  };

  bool try_point(const Cut& cut, const State& state);
  void vote_and_climb(const Cut& cut, const State& state);
  CutTrees trees(const Cut& cut) { return {cut, words_}; }
  bool accept(const Cut& cut);
  bool settled(const Cut& cut, State& state);
  bool settle_set(const Cut& cut, State& state, std::size_t f);
  bool rounds_away(const Cut& cut, State& state);
  void see_leaves(const Cut& cut, const State& state, const Cut::Part& part, Span& plus,
                  Span& minus);
  Branch choose(const Cut& cut, const State& state);
  std::int32_t best_leaf(const Cut& cut, const State& state, std::size_t t) const;

  void write_trial(const Cut& cut);
  void split(const Cut& cut, State& state, std::size_t depth);

  const Ensemble& ensemble_;
  const Ball& ball_;
  const Property& property_;
  const Clock& clock_;
  Messages messages_;
  std::vector<State> stack_;  // states of the upper halves, one a depth
  std::vector<double> margin_;
  Point found_;
  Point trial_;
  std::int64_t n_near_ = 0;  // settled boxes whose value is enough but which do not fool

  std::vector<double> below_;
  std::vector<double> above_;
  std::vector<std::int32_t> open_;
  std::vector<Word> words_;

 private:
  Answer bound_and_try(const Cut& cut, State& state, int n_sweeps);
  Answer explore(const Cut& cut, State& state, std::size_t depth, int n_sweeps);
};

}  // namespace hardwood::verify
