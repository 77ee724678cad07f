#include "hardwood/verify/distance.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <ctime>
#include <limits>
#include <memory>
#include <optional>

#include "hardwood/model/predict.hpp"
#include "hardwood/parallel.hpp"
#include "hardwood/verify/change_sets.hpp"
#include "hardwood/verify/cost_search.hpp"

namespace hardwood::verify {
namespace {

using cells::length_of;

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr std::size_t kSample = 64;   // radii of which the plain bound tries some
constexpr int kPlainHalvings = 5;     // of the bracket that the sample leaves
constexpr int kSetHalvings = 7;       // of the bracket around the first set of features
constexpr double kFirstGrowth = 1.1;  // of the radius, squared from one decision to the next
constexpr double kClose = 1e-3;       // of the first gap around the largest output

/// Processor time of this thread, or what is nearest to it.
double thread_seconds() {
#ifdef CLOCK_THREAD_CPUTIME_ID
  timespec now{};
  if (clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now) == 0) {
    return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
  }
#endif
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

/// What one thread needs; memory is kept from row to row.
struct Workspace {
  explicit Workspace(const Ensemble& ensemble) : builder(ensemble) {}

  CutBuilder builder;
  Cut cut;
  State root;
  State state;
  cells::Within within;
};

/// All questions about one row.
class RowSearch {
 public:
  RowSearch(const Ensemble& ensemble, std::span<const double> x, const Property& property,
            const Budget& budget, const Clock& clock, Workspace& work)
      : ensemble_(ensemble),
        budget_(budget),
        property_(property),
        clock_(clock),
        ball_(ensemble, x, budget),
        search_(ensemble, ball_, property_, clock),
        work_(work) {
    for (const Question& question : ensemble.questions(property)) {
      asked_.push_back({question, ensemble.members(question), 0});
      asked_.back().margin = plain(asked_.back(), 0);
    }
    // The nearest rival first: its example is the bar for the others.
    std::ranges::stable_sort(asked_, std::greater<>{}, &Asked::margin);
  }

  /// With Scope::kRoot: near examples, and bounds that need no branching.
  void distance(Scope scope) {
    scope_ = scope;
    if (!wrong_already()) {
      double lower = kInfinity;
      for (const Asked& asked : asked_) {
        double mine = 0;
        if (budget_.norm != Norm::kInf) {
          mine = cheapest(asked, lower);
        } else {
          mine = budget_.max_changes > 0 ? nearest_of_few(asked, lower) : nearest(asked, lower);
        }
        lower = std::min(lower, mine);
      }
      lower_ = std::min(lower, upper_);
      if (lower_ == upper_) ending_ = Answer::kNone;
    }
  }

  void decision() {
    if (wrong_already()) return;
    lower_ = kInfinity;
    for (const Asked& asked : asked_) {
      const Answer answer = decide_all(asked);
      if (answer == Answer::kFound) {
        lower_ = 0;
        ending_ = Answer::kNone;
        return;
      }
      if (answer != Answer::kNone) lower_ = 0;
    }
  }

  /// The largest output that the budget allows, or the least: `upper()` is found, `lower()` proven.
  void extreme_output(bool up);

  double lower() const { return lower_; }
  double upper() const { return upper_; }
  Answer ending() const { return ending_; }

  void example(std::span<double> x_adv) const {
    if (upper_ == kInfinity) {
      std::ranges::fill(x_adv, std::numeric_limits<double>::quiet_NaN());
      return;
    }
    for (std::size_t f = 0; f < x_adv.size(); ++f) {
      const bool moved = example_[f] != ball_.home()[f];
      x_adv[f] = moved ? ball_.nearest(f, example_[f]) : ball_.x()[f];
    }
  }

 private:
  struct Asked {
    Question question;
    std::vector<Ensemble::Member> members;
    double margin;
  };

  bool wrong_already() {
    example_.assign(ball_.home().begin(), ball_.home().end());
    if (!search_.fools(example_)) return false;
    lower_ = upper_ = 0;
    return true;
  }

  double plain(const Asked& asked, double radius) {
    ball_.within(radius, work_.within);
    return plain_bound(ball_, asked.members,
                       ensemble_.plus_base(asked.question) - ensemble_.minus_base(asked.question),
                       work_.within);
  }
  /// Whether already the plain bound proves that nothing within the radius fools the model.
  bool plainly_safe(const Asked& asked, double radius) {
    return plain(asked, radius) <
           ensemble_.needed(asked.question, ensemble_.largest_error(asked.question));
  }

  /// Make a cut with a fresh state; false if the plain bound proves it empty.
  bool build(const Asked& asked, double radius,
             std::optional<ChangeSets::Features> changing = std::nullopt) {
    CutBuilder::Within within{radius};
    within.changing = changing;
    work_.builder.build(ball_, asked.question, asked.members, within, work_.cut);
    if (work_.cut.empty) return false;
    messages_.start(work_.cut, work_.root);
    return true;
  }

  void keep_example() { keep(search_.found()); }
  void keep(const Point& point) {
    const double length = ball_.length(point);
    if (length >= upper_ || too_many_changes(point)) return;
    upper_ = length;
    example_ = point;
  }

  bool too_many_changes(const Point& point) const {
    return budget_.max_changes > 0 && ball_.n_changes(point) > budget_.max_changes;
  }

  bool few_changes() const {
    return budget_.max_changes > 0 && budget_.max_changes <= ChangeSets::kFew;
  }

  void note(Answer answer) {
    if (answer == Answer::kTime || answer == Answer::kRounding) ending_ = answer;
  }

  Answer decide_all(const Asked& asked) {
    if (plainly_safe(asked, kInfinity)) return Answer::kNone;
    if (budget_.norm == Norm::kInf && few_changes()) {
      ChangeSets sets(ball_, asked.question, asked.members, kInfinity);
      const Answer answer = decide_few(asked, sets, kInfinity);
      if (!sets.too_many()) return answer;
    }
    if (ball_.cost_norm() != Norm::kInf) return decide_costs(asked, kInfinity, scope_);
    if (!build(asked, kInfinity)) return Answer::kNone;
    const Answer answer = search_.decide(work_.cut, work_.root, Scope::kFull);
    if (answer == Answer::kFound) keep_example();
    note(answer);
    return answer;
  }

  /// The same in a norm that sums up steps, or for a number of changes, each of at most `radius`.
  Answer decide_costs(const Asked& asked, double radius, Scope scope) {
    double bar = budget_.radius < kInfinity ? budget_.radius : farthest();
    if (ball_.cost_norm() != budget_.norm) bar = budget_.max_changes;
    CostSearch search(ensemble_, ball_, property_, clock_, bar, true);
    return search_costs(asked, search, scope, radius);
  }

  double nearest(const Asked& asked, double other_lower);
  double nearest_of_few(const Asked& asked, double other_lower);
  Answer decide_few(const Asked& asked, ChangeSets& sets, double radius);
  double nearest_by_count(const Asked& asked, double proven);
  void shorten(const Asked& asked, double proven);
  double farthest() const;
  double plain_radius(const Asked& asked, double& unsafe);
  bool gallop(const Asked& asked, double radius, double& proven);
  void bisect(double& proven);
  double finish(const Asked& asked, double proven);
  double cheapest(const Asked& asked, double other_lower);
  Answer search_costs(const Asked& asked, CostSearch& search, Scope scope, double most = kInfinity);

  const Ensemble& ensemble_;
  const Budget& budget_;
  Property property_;
  const Clock& clock_;
  Ball ball_;
  Search search_;
  Messages messages_;
  Workspace& work_;
  std::vector<Asked> asked_;
  Point example_;
  Scope scope_ = Scope::kFull;
  double lower_ = 0;
  double upper_ = kInfinity;
  Answer ending_ = Answer::kNone;
};

/// A lower bound for one question; finds examples that are nearer than upper_ on the way.
double RowSearch::nearest(const Asked& asked, double other_lower) {
  double proven = -1;
  if (clock_.over()) {
    ending_ = Answer::kTime;
    const double hope = std::min(other_lower, upper_);
    return hope < kInfinity && plainly_safe(asked, hope) ? hope : 0;
  }
  if (upper_ < kInfinity) {
    const double radius = ball_.step_below(upper_);
    if (plainly_safe(asked, radius) || !build(asked, radius)) return upper_;
    const Answer answer = search_.decide(work_.cut, work_.root, Scope::kRoot);
    if (answer == Answer::kNone) return upper_;
    note(answer);
    double unsafe = radius;
    proven = plain_radius(asked, unsafe);
    if (answer == Answer::kFound) {
      keep_example();
      bisect(proven);
    }
    return scope_ == Scope::kFull ? finish(asked, proven) : std::max(proven, 0.0);
  }
  double unsafe = kInfinity;
  proven = plain_radius(asked, unsafe);
  if (proven == kInfinity || !gallop(asked, unsafe, proven)) return std::max(proven, 0.0);
  bisect(proven);
  return scope_ == Scope::kFull ? finish(asked, proven) : std::max(proven, 0.0);
}

/// The largest radius that the plain bound was seen to prove, and the smallest it was not.
double RowSearch::plain_radius(const Asked& asked, double& unsafe) {
  if (unsafe == kInfinity && plainly_safe(asked, kInfinity)) return kInfinity;
  std::vector<double> radii;
  const std::size_t stride = std::max<std::size_t>(ball_.steps().size() / (4 * kSample), 1);
  for (std::size_t i = 0; i < ball_.steps().size(); i += stride) {
    if (ball_.steps()[i] < unsafe) radii.push_back(ball_.steps()[i]);
  }
  std::ranges::sort(radii);
  double safe = -1;
  for (std::size_t i = 1; i <= 2 * radii.size() && !clock_.over(); i *= 2) {
    const double radius = radii[std::min(i, radii.size()) - 1];
    if (!plainly_safe(asked, radius)) {
      unsafe = radius;
      break;
    }
    safe = radius;
  }
  if (unsafe == kInfinity) return safe;
  for (int i = 0; i < kPlainHalvings && !clock_.over(); ++i) {
    const double middle = (std::max(safe, 0.0) + unsafe) / 2;
    (plainly_safe(asked, middle) ? safe : unsafe) = middle;
  }
  return safe;
}

/// Grow the ball until it holds an example or nothing remains to grow into; false if the question
/// is answered (or the clock stopped) before there is one. `proven` grows on the way.
bool RowSearch::gallop(const Asked& asked, double radius, double& proven) {
  double growth = kFirstGrowth;
  const double largest = ball_.step_below(kInfinity);
  radius = std::max(radius, std::numeric_limits<double>::min());  // zero would not grow
  while (!clock_.over()) {
    const bool last = radius >= largest;
    Answer answer = Answer::kNone;
    if (build(asked, radius)) {
      answer = search_.decide(work_.cut, work_.root, last ? scope_ : Scope::kRoot);
    }
    note(answer);
    if (answer == Answer::kFound) {
      keep_example();
      // A full search spends its state.
      if (last && budget_.norm == Norm::kInf) build(asked, upper_);
      return true;
    }
    if (answer == Answer::kTime || answer == Answer::kRounding) return false;
    if (answer == Answer::kOpen && last) return false;
    if (answer == Answer::kNone) {
      proven = radius;
      if (last) {
        proven = kInfinity;
        return false;
      }
    }
    radius *= growth;
    growth *= growth;
  }
  note(Answer::kTime);
  return false;
}

/// Narrow the bracket between what is proven and the example by root decisions inside one cut.
void RowSearch::bisect(double& proven) {
  Cut& cut = work_.cut;
  std::vector<double> radii;
  for (const double step : cut.step) {
    if (step > proven && step < upper_) radii.push_back(step);
  }
  std::ranges::sort(radii);
  radii.erase(std::unique(radii.begin(), radii.end()), radii.end());
  std::size_t first = 0;
  std::size_t end = radii.size();
  while (first < end && !clock_.over()) {
    const std::size_t middle = first + (end - first) / 2;
    work_.state = work_.root;
    Search::restrict(cut, work_.state, radii[middle]);
    const Answer answer =
        work_.state.dead() ? Answer::kNone : search_.decide(cut, work_.state, Scope::kRoot);
    note(answer);
    if (answer == Answer::kFound) {
      keep_example();
      std::swap(work_.root, work_.state);
      const auto nearer = std::ranges::lower_bound(radii, upper_) - radii.begin();
      // Where changes are counted, an example with too many of them is found but not kept.
      end = std::min(static_cast<std::size_t>(nearer), middle);
      continue;
    }
    if (answer == Answer::kNone) proven = radii[middle];
    first = middle + 1;
  }
}

/// Prove that nothing is nearer than the example, or find what is.
double RowSearch::finish(const Asked& asked, double proven) {
  while (!clock_.over()) {
    double radius = -1;
    for (const double step : work_.cut.step) {
      if (step < upper_) radius = std::max(radius, step);
    }
    if (radius <= proven || !build(asked, radius)) return upper_;
    const Answer answer = search_.decide(work_.cut, work_.root, Scope::kFull);
    if (answer == Answer::kNone) return upper_;
    note(answer);
    if (answer != Answer::kFound) break;
    keep_example();
  }
  if (ending_ == Answer::kNone) ending_ = Answer::kTime;
  return std::max(proven, 0.0);
}

/// As `nearest`, where the number of changes is limited.
double RowSearch::nearest_of_few(const Asked& asked, double other_lower) {
  if (clock_.over()) {
    ending_ = Answer::kTime;
    const double hope = std::min(other_lower, upper_);
    return hope < kInfinity && plainly_safe(asked, hope) ? hope : 0;
  }
  if (!few_changes()) return nearest_by_count(asked, -1);
  double radius = ball_.step_below(upper_);
  if (plainly_safe(asked, radius)) return upper_;
  ChangeSets sets(ball_, asked.question, asked.members, radius);
  const auto possible = [&](double most) {
    return sets.any_of(most, [](ChangeSets::Features) { return true; });
  };
  double proven = -1;
  if (!possible(radius)) return upper_;
  for (int i = 0; i < kSetHalvings; ++i) {
    const double middle = (std::max(proven, 0.0) + radius) / 2;
    (possible(middle) ? radius : proven) = middle;
  }
  double growth = kFirstGrowth;
  while (true) {
    const double largest = ball_.step_below(upper_);
    if (largest <= proven) return upper_;
    radius = std::min(radius, largest);
    const Answer answer = decide_few(asked, sets, radius);
    if (sets.too_many()) return nearest_by_count(asked, proven);
    if (answer == Answer::kFound) {
      shorten(asked, proven);
      continue;
    }
    if (answer == Answer::kNone) {
      proven = radius;
    } else if (answer != Answer::kOpen || radius == largest) {
      return std::max(proven, 0.0);
    }
    radius = std::max(radius * growth, std::numeric_limits<double>::min());  // zero would not grow
    growth *= growth;
  }
}

/// Whether few changes of at most `radius` fool the model, one set of features after the other.
Answer RowSearch::decide_few(const Asked& asked, ChangeSets& sets, double radius) {
  Answer answer = Answer::kNone;
  sets.any_of(radius, [&](ChangeSets::Features features) {
    if (!build(asked, radius, features)) return false;
    const Answer mine = search_.decide(work_.cut, work_.root, scope_);
    if (mine != Answer::kNone) answer = mine;
    if (mine == Answer::kFound) keep_example();
    return mine != Answer::kNone && mine != Answer::kOpen;
  });
  note(answer);
  return answer;
}

/// The same where many sets of features remain: decide for one size of changes after the other,
/// with their number as a cost.
double RowSearch::nearest_by_count(const Asked& asked, double proven) {
  double unsafe = upper_;
  proven = std::max(proven, plain_radius(asked, unsafe));
  std::vector<double> radii;
  for (const double step : ball_.steps()) {
    if (step > proven && step < upper_) radii.push_back(step);
  }
  std::ranges::sort(radii);
  radii.erase(std::unique(radii.begin(), radii.end()), radii.end());
  std::size_t first = 0;
  std::size_t end = radii.size();
  // Start where the plain bound stops, in growing strides up to a first example; then halve. What
  // needs branching waits: to prove that nothing is nearer takes long, and is needed once.
  auto middle = static_cast<std::size_t>(std::ranges::lower_bound(radii, unsafe) - radii.begin());
  std::size_t stride = std::max<std::size_t>(radii.size() / kSample, 1);
  bool found = upper_ < kInfinity;
  while (true) {
    if (end == 0 || radii[end - 1] <= proven) return upper_;
    const Scope scope = first < end ? Scope::kRoot : Scope::kFull;
    if (scope == Scope::kFull && scope_ == Scope::kRoot) return std::max(proven, 0.0);
    middle = first < end ? std::clamp(middle, first, end - 1) : end - 1;
    const Answer answer = clock_.over() ? Answer::kTime : decide_costs(asked, radii[middle], scope);
    if (answer == Answer::kFound) {
      found = true;
      shorten(asked, proven);
      end = static_cast<std::size_t>(std::ranges::lower_bound(radii, upper_) - radii.begin());
    } else if (answer == Answer::kNone) {
      proven = radii[middle];
      first = middle + 1;
    } else if (answer == Answer::kOpen && scope == Scope::kRoot) {
      first = middle + 1;
    } else {
      note(answer);
      return std::max(proven, 0.0);
    }
    middle = found && first < end ? first + (end - first) / 2 : middle + stride;
    stride *= 2;
  }
}

/// Look for an example nearer than the last one that changes the same features.
void RowSearch::shorten(const Asked& asked, double proven) {
  std::vector<std::int32_t> changing;
  for (std::size_t f = 0; f < example_.size(); ++f) {
    if (example_[f] != ball_.home()[f]) changing.push_back(static_cast<std::int32_t>(f));
  }
  // What it proves holds for these features only.
  if (build(asked, ball_.step_below(upper_), changing)) bisect(proven);
}

/// No point that counts is farther than this, in a norm that sums up steps.
double RowSearch::farthest() const {
  cells::Length length{budget_.norm};
  for (std::size_t f = 0; f < ball_.home().size(); ++f) length.add(ball_.largest_step(f));
  if (budget_.norm == Norm::kZero) return length.total + 1;  // what is nearer is one change less
  return std::nextafter(length.total * (1 + 1e-9), kInfinity);
}

/// As `nearest`, in a norm that sums up steps.
double RowSearch::cheapest(const Asked& asked, double other_lower) {
  if (clock_.over()) {
    ending_ = Answer::kTime;
    const double hope = std::min(other_lower, upper_);
    // A ball lies in the box of the same radius; without a radius there is nothing to hope for.
    return hope < kInfinity && budget_.norm != Norm::kZero && plainly_safe(asked, hope) ? hope : 0;
  }
  if (upper_ == kInfinity) {
    double unsafe = kInfinity;
    double proven = plain_radius(asked, unsafe);
    if (proven == kInfinity) return kInfinity;
    // With few changes, the nearest box may hold no example that counts.
    if (budget_.max_changes == 0 && !gallop(asked, unsafe, proven)) {
      // No length is below that of its largest step; one changed feature is the least of all.
      if (proven == kInfinity) return kInfinity;
      return budget_.norm == Norm::kZero ? 1 : std::max(proven, 0.0);
    }
  }
  CostSearch search(ensemble_, ball_, property_, clock_, upper_ < kInfinity ? upper_ : farthest(),
                    false);
  const Answer answer = search_costs(asked, search, scope_);
  if (answer == Answer::kNone) return upper_;
  const double cost = std::min(search.open_cost(), search.budget());
  if (budget_.norm == Norm::kZero) return std::max(1.0, std::ceil(cost - 1e-9));
  return std::min(length_of(budget_.norm, cost, search.unit()), upper_);
}

/// Cut to what the budget pays for and search, again whenever the budget has fallen by much.
Answer RowSearch::search_costs(const Asked& asked, CostSearch& search, Scope scope, double most) {
  bool first = true;
  while (true) {
    search.count_anew();
    const double budget = search.budget();
    double radius = length_of(ball_.cost_norm(), budget, search.unit());
    if (ball_.cost_norm() == Norm::kZero) radius = budget < 1 ? 0 : most;
    // Room for the rounding of the root and of sums; dearer points are left out later.
    work_.builder.build(ball_, asked.question, asked.members,
                        {ball_.cost_norm() == Norm::kZero ? radius : radius * (1 + 1e-9),
                         budget * (1 + 1e-9), search.unit()},
                        work_.cut);
    if (work_.cut.empty) return Answer::kNone;
    if (first && !search.closed() && upper_ < kInfinity && search.improve(work_.cut, example_)) {
      keep(search.example());
      first = false;
      continue;
    }
    first = false;
    const double price = static_cast<double>(-work_.cut.needed) / std::max(budget, 1e-300);
    messages_.start(work_.cut, work_.root, std::min(price, 1e300), budget);
    const Answer answer = search.cheapest(work_.cut, work_.root, scope);
    if (search.has_example()) keep(search.example());
    note(answer);
    if (answer != Answer::kFound || search.closed()) return answer;
  }
}

void RowSearch::extreme_output(bool up) {
  const double sign = up ? 1 : -1;  // below, more is always up
  const std::int32_t constant = Question::kConstant;
  const Question question{up ? 0 : constant, up ? constant : 0, true};
  Asked asked{question, ensemble_.members(question), 0};
  Point best(ball_.home().begin(), ball_.home().end());
  double found = sign * search_.output(best);
  double proven = plain(asked, kInfinity) + ensemble_.largest_error(question);
  const double close = kClose * (proven - found);
  while (found < proven) {
    // Halve the gap while it is wide; then ask for anything better than what was found.
    const double middle = found + (proven - found) / 2;
    const double bar = proven - found > close && middle < proven ? middle : found;
    asked.question.constant = sign * bar;
    property_ = {Property::kOutput, up ? -kInfinity : sign * bar, up ? sign * bar : kInfinity};
    upper_ = kInfinity;  // near or far, any example will do
    const Answer answer = clock_.over() ? Answer::kTime : decide_all(asked);
    if (answer == Answer::kFound) {
      best = example_;
      found = sign * search_.output(best);
    } else if (answer == Answer::kNone) {
      proven = bar;
    } else {
      ending_ = answer;
      break;
    }
  }
  lower_ = sign * std::max(proven, found);
  upper_ = sign * found;
  example_ = std::move(best);
}

template <class PropertyOf, class Ask>
Distances for_each_row(const model::Trees& trees, Matrix<const double> x, PropertyOf&& property_of,
                       const Budget& budget, const Limits& limits, Watch& watch, Ask&& ask) {
  const Ensemble ensemble(trees, budget.reach);
  Distances result{
      std::vector<double>(x.n_rows), std::vector<double>(x.n_rows, kInfinity),
      std::vector<std::uint8_t>(x.n_rows),
      std::vector<double>(x.n_rows * x.n_cols, std::numeric_limits<double>::quiet_NaN()),
      std::vector<double>(x.n_rows)};
  const Matrix<double> x_adv{result.x_adv.data(), x.n_rows, x.n_cols};
  std::vector<std::unique_ptr<Workspace>> work(static_cast<std::size_t>(limits.n_threads));
  parallel_for(x.n_rows, limits.n_threads, [&](std::size_t i, int thread) {
    if (watch.over()) {
      result.ending[i] = static_cast<std::uint8_t>(watch.stop ? Ending::kStopped : Ending::kTime);
      ++watch.n_open;
      ++watch.n_done;
      return;
    }
    auto& mine = work[static_cast<std::size_t>(thread)];
    if (!mine) mine = std::make_unique<Workspace>(ensemble);
    const Time row_deadline =
        std::min(watch.deadline, after(std::chrono::steady_clock::now(), limits.row_seconds));
    const double before = thread_seconds();
    const Clock clock(row_deadline, watch.stop);
    RowSearch row(ensemble, x.row(i), property_of(i), budget, clock, *mine);
    ask(row);
    result.lower[i] = row.lower();
    result.upper[i] = row.upper();
    row.example(x_adv.row(i));
    Ending ending = Ending::kExact;
    if (row.ending() == Answer::kRounding) ending = Ending::kRounding;
    if (row.ending() == Answer::kTime) ending = watch.stop ? Ending::kStopped : Ending::kTime;
    result.ending[i] = static_cast<std::uint8_t>(ending);
    if (ending != Ending::kExact) ++watch.n_open;
    result.seconds[i] = thread_seconds() - before;
    ++watch.n_done;
  });
  return result;
}

}  // namespace

Distances nearest_in_ensemble(const model::Trees& trees, Matrix<const double> x,
                              std::span<const std::int32_t> y, const Budget& budget,
                              const Limits& limits, Watch& watch) {
  const auto property_of = [&](std::size_t i) { return Property{y[i]}; };
  return for_each_row(trees, x, property_of, budget, limits, watch,
                      [](RowSearch& row) { row.distance(Scope::kFull); });
}

Distances near_in_ensemble(const model::Trees& trees, Matrix<const double> x,
                           std::span<const std::int32_t> y, const Budget& budget,
                           const Limits& limits, Watch& watch) {
  const auto property_of = [&](std::size_t i) { return Property{y[i]}; };
  return for_each_row(trees, x, property_of, budget, limits, watch,
                      [](RowSearch& row) { row.distance(Scope::kRoot); });
}

Distances decide_in_ensemble(const model::Trees& trees, Matrix<const double> x,
                             std::span<const std::int32_t> y, const Budget& budget,
                             const Limits& limits, Watch& watch) {
  const auto property_of = [&](std::size_t i) { return Property{y[i]}; };
  return for_each_row(trees, x, property_of, budget, limits, watch,
                      [](RowSearch& row) { row.decision(); });
}

Distances leaving_in_ensemble(const model::Trees& trees, Matrix<const double> x,
                              Matrix<const double> range, const Budget& budget,
                              const Limits& limits, Watch& watch) {
  const auto property_of = [&](std::size_t i) {
    return Property{Property::kOutput, range.row(i)[0], range.row(i)[1]};
  };
  return for_each_row(trees, x, property_of, budget, limits, watch,
                      [](RowSearch& row) { row.distance(Scope::kFull); });
}

Extremes farthest_in_ensemble(const model::Trees& trees, Matrix<const double> x, bool up,
                              const Budget& budget, const Limits& limits, Watch& watch) {
  const auto property_of = [](std::size_t) {
    return Property{Property::kOutput, -kInfinity, kInfinity};
  };
  Distances rows = for_each_row(trees, x, property_of, budget, limits, watch,
                                [up](RowSearch& row) { row.extreme_output(up); });
  Extremes result{std::move(rows.lower), std::move(rows.upper), std::move(rows.ending),
                  std::move(rows.x_adv), std::move(rows.seconds)};
  const auto predictor = model::make_predictor(trees);
  for (std::size_t i = 0; i < x.n_rows; ++i) {
    if (std::isfinite(result.found[i])) continue;  // its turn came
    result.proven[i] = up ? kInfinity : -kInfinity;
    result.found[i] = predictor->margin({x.row(i).data(), 1, x.n_cols}, 1)[0];
    std::ranges::copy(x.row(i), result.x_adv.begin() + static_cast<std::ptrdiff_t>(i * x.n_cols));
  }
  return result;
}

}  // namespace hardwood::verify
