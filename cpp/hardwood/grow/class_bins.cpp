#include "hardwood/grow/class_bins.hpp"

#include <array>
#include <functional>
#include <numeric>
#include <vector>

namespace hardwood::grow {
namespace {

/// The class weights of the bins below each threshold.
template <class Weights>
class Prefix;

template <>
class Prefix<std::array<double, 2>> {
 public:
  using View = const std::array<double, 2>&;

  template <class Stat>
  Prefix(Stat, std::span<const typename Stat::Cell* const> of_class, std::size_t n_bins) {
    typename Stat::Cell sum0{}, sum1{};
    for (std::size_t bin = 0; bin < n_bins; ++bin) {
      below_[bin] = {Stat::weight(sum0), Stat::weight(sum1)};
      sum0 += of_class[0][bin];
      sum1 += of_class[1][bin];
    }
    below_[n_bins] = {Stat::weight(sum0), Stat::weight(sum1)};
  }

  View operator[](std::size_t bin) const { return below_[bin]; }

 private:
  std::array<std::array<double, 2>, 257> below_;
};

template <>
class Prefix<std::vector<double>> {
 public:
  using View = std::span<const double>;

  template <class Stat>
  Prefix(Stat, std::span<const typename Stat::Cell* const> of_class, std::size_t n_bins)
      : n_classes_(of_class.size()), below_((n_bins + 1) * n_classes_) {
    for (std::size_t k = 0; k < n_classes_; ++k) {
      typename Stat::Cell sum{};
      for (std::size_t bin = 0; bin < n_bins; ++bin) {
        sum += of_class[k][bin];
        below_[(bin + 1) * n_classes_ + k] = Stat::weight(sum);
      }
    }
  }

  View operator[](std::size_t bin) const { return {below_.data() + bin * n_classes_, n_classes_}; }

 private:
  std::size_t n_classes_;
  std::vector<double> below_;
};

/// The histogram of a number as its search reads it, whatever the cells are.
template <class Weights>
struct NumberCells {
  Prefix<Weights> below;
  Weights missing;
  bool any_missing;
  std::function<std::size_t(std::size_t bin, bool missing_left)> n_left;  ///< rows
};

/// That of categories.
template <class Weights>
struct SetCells {
  std::vector<Weights> weights;     ///< of each bin
  std::vector<std::size_t> n_rows;  ///< of each bin
  Weights missing;
  std::size_t n_missing;
};

template <class Weights>
Weights no_weights(std::size_t n_classes) {
  Weights weights{};
  if constexpr (requires { weights.resize(n_classes); }) weights.resize(n_classes);
  return weights;
}

/// `only`: the class whose rows alone the adversary moves, or -1.
bool moves(std::int32_t only, std::size_t k) {
  return only < 0 || k == static_cast<std::size_t>(only);
}

template <class C>
void search_number(const NumberCells<typename C::Weights>& cells, const Window& window,
                   const ClassJudge<C>& judge, bool counts, std::int32_t only,
                   ClassBinSplit& best) {
  using Weights = typename C::Weights;
  using View = typename Prefix<Weights>::View;
  const Prefix<Weights>& below = cells.below;
  const bool any_missing = cells.any_missing;
  const auto with_missing = [&](View weights) {
    Weights sum(cells.missing);
    for (std::size_t k = 0; k < sum.size(); ++k) sum[k] += weights[k];
    return sum;
  };
  const auto consider = [&](std::size_t bin, bool missing_left, View sure, View plain,
                            View possible) {
    if (counts && !judge.enough_rows(cells.n_left(bin, missing_left))) return;
    if (!judge.accepts(sure, plain, possible, any_missing ? &missing_left : nullptr, best)) return;
    best.bin = bin;
    best.right_bins = {};
    best.saw_missing = true;  // or there are none, and the heavier side gets them
    best.n_left = cells.n_left(bin, missing_left);
  };
  /// The weights of `other`, but of classes that are not moved those of `plain`.
  const auto moved = [&](View plain, View other) {
    Weights weights = no_weights<Weights>(plain.size());
    for (std::size_t k = 0; k < weights.size(); ++k) {
      weights[k] = moves(only, k) ? other[k] : plain[k];
    }
    return weights;
  };

  if (any_missing) {  // Missing against present: no adversary moves a value below the lowest float.
    const Weights alone = with_missing(below[0]);
    const Weights all = with_missing(below[window.n_bins]);
    consider(0, true, alone, alone, window.blank ? moved(alone, all) : alone);
  }
  for (std::size_t bin = window.first; bin < window.last; ++bin) {
    View sure = below[window.sure[bin]], plain = below[bin];
    View possible = below[window.possible[bin]];
    if (only >= 0 || window.blank) {  // values that are removed go with the missing ones
      consider(bin, false, moved(plain, window.blank ? below[0] : sure), plain,
               moved(plain, possible));
      if (!any_missing) continue;
      const Weights with = with_missing(plain);
      consider(bin, true, moved(with, with_missing(sure)), with,
               moved(with, with_missing(window.blank ? below[window.n_bins] : possible)));
      continue;
    }
    consider(bin, false, sure, plain, possible);
    if (any_missing) {
      consider(bin, true, with_missing(sure), with_missing(plain), with_missing(possible));
    }
  }
}

/// ClassJudge without its criterion: sets are few, and to compile their search for each criterion
/// takes long.
template <class Weights>
struct SetJudge {
  std::function<bool(std::size_t n_left)> enough_rows;
  std::function<bool(const Weights& sure, const Weights& plain, const Weights& possible)> accepts;
};

/// The same for sets of categories; see SetSearch in bin_search.cpp. Two classes have one order, by
/// the share of the second; more have one order a class.
template <class Weights>
void search_sets(const SetCells<Weights>& cells, const Window& window,
                 const SetJudge<Weights>& judge, bool counts, std::int32_t only, double smoothing,
                 std::span<const double> total, ClassBinSplit& best) {
  const std::vector<Weights>& weights = cells.weights;
  const Weights& missing = cells.missing;
  const std::size_t n_classes = missing.size(), n_bins = window.n_bins;
  const auto none = [&] { return no_weights<Weights>(n_classes); };
  Weights present = none();
  bool any_missing = false;
  for (std::size_t k = 0; k < n_classes; ++k) {
    any_missing = any_missing || missing[k] > 0;
    for (const Weights& bin : weights) present[k] += bin[k];
  }
  const double all = std::accumulate(total.begin(), total.end(), 0.0);

  SetWalk walk(window.changes, n_bins);
  Weights crossed = none();
  std::array<Weights, 2> ambiguous{none(), none()};  // right, left
  const auto consider = [&](bool turned) {
    Weights plain = none(), sure = none(), possible = none();
    for (std::size_t k = 0; k < n_classes; ++k) {
      const double others = present[k] - crossed[k];
      plain[k] = missing[k] + (turned ? others : crossed[k]);
      sure[k] = plain[k] - (moves(only, k) ? ambiguous[!turned][k] : 0);
      const double right = window.blank ? (turned ? crossed[k] : others) : ambiguous[turned][k];
      possible[k] = plain[k] + (moves(only, k) ? right : 0);
    }
    const auto n_left = [&] {
      std::size_t n = any_missing ? cells.n_missing : 0;
      for (std::size_t bin = 0; bin < n_bins; ++bin) {
        if (walk.is_left(bin) != turned) n += cells.n_rows[bin];
      }
      return n;
    };
    if (counts && !judge.enough_rows(n_left())) return;
    if (!judge.accepts(sure, plain, possible)) return;
    best.bin = 0;
    best.saw_missing = true;
    best.n_left = n_left();
    best.right_bins = {};
    for (std::size_t bin = 0; bin < n_bins; ++bin) {
      if (walk.is_left(bin) == turned) best.right_bins.put(bin);
    }
  };

  if (any_missing) consider(false);
  for (std::size_t by = 1; by < (n_classes == 2 ? 2 : n_classes + 1); ++by) {
    const std::size_t own = by % n_classes;
    const double share = total[own] / all;
    const auto step_of = [&](std::span<const bins::Code> some) -> SetOrder::Step {
      double weight = 0, weight_of_own = 0;
      for (const bins::Code bin : some) {
        weight = std::accumulate(weights[bin].begin(), weights[bin].end(), weight);
        weight_of_own += weights[bin][own];
      }
      return {(weight_of_own - share * weight) / (weight + smoothing), weight > 0};
    };
    for_each_order(window.changes, n_bins, step_of, [&](const SetOrder& order) {
      walk.restart();
      crossed = ambiguous[0] = ambiguous[1] = none();
      for (std::size_t step = 0, at = 0; step + 1 < order.step_end.size(); ++step) {
        for (; at < order.step_end[step]; ++at) {
          const bins::Code bin = order.bins[at];
          for (std::size_t k = 0; k < n_classes; ++k) crossed[k] += weights[bin][k];
          walk.cross(bin, [&](bins::Code of, bool left, bool begins) {
            for (std::size_t k = 0; k < n_classes; ++k) {
              ambiguous[left][k] += begins ? weights[of][k] : -weights[of][k];
            }
          });
        }
        const bool both = any_missing || window.blank;
        const bool heavier = 2 * std::accumulate(crossed.begin(), crossed.end(), 0.0) >= all;
        if (both || heavier) consider(false);
        if (both || !heavier) consider(true);
      }
    });
  }
}

}  // namespace

template <class S>
template <class Weights>
auto ClassBins<S>::number_cells(std::span<const Cell* const> of_class, std::size_t f) const {
  const Window& window = windows_[f];
  const std::size_t missing_code = binned_.missing_code();
  Weights missing = no_weights<Weights>(of_class.size());
  bool any_missing = window.blank;  // or could be
  for (std::size_t k = 0; binned_.has_missing(f) && k < of_class.size(); ++k) {
    missing[k] = Stat::weight(of_class[k][missing_code]);
    any_missing = any_missing || missing[k] > 0;
  }
  const auto n_left = [=](std::size_t bin, bool missing_left) {
    std::size_t n = 0;
    for (const Cell* cells : of_class) {
      Cell sum = missing_left && any_missing ? cells[missing_code] : Cell{};
      for (std::size_t b = 0; b < bin; ++b) sum += cells[b];
      n += Stat::n_rows(sum);
    }
    return n;
  };
  return NumberCells<Weights>{{Stat{}, of_class, window.n_bins}, missing, any_missing, n_left};
}

template <class S>
template <class Weights>
auto ClassBins<S>::set_cells(std::span<const Cell* const> of_class, std::size_t f) const {
  const std::size_t n_classes = of_class.size(), n_bins = windows_[f].n_bins;
  SetCells<Weights> cells{{n_bins, no_weights<Weights>(n_classes)},
                          std::vector<std::size_t>(n_bins),
                          no_weights<Weights>(n_classes),
                          0};
  for (std::size_t k = 0; k < n_classes; ++k) {
    for (std::size_t bin = 0; bin < n_bins; ++bin) {
      cells.weights[bin][k] = Stat::weight(of_class[k][bin]);
      cells.n_rows[bin] += Stat::n_rows(of_class[k][bin]);
    }
    if (!binned_.has_missing(f)) continue;
    const Cell& missing = of_class[k][binned_.missing_code()];
    cells.missing[k] = Stat::weight(missing);
    cells.n_missing += Stat::n_rows(missing);
  }
  return cells;
}

template <class S>
void ClassBins<S>::search(const HistogramPlan& plan, const Pass& pass, const Cell* cells,
                          std::span<const std::int8_t> monotonic, const ClassSearched& node,
                          ClassBinSplit& best, const Cell*) const {
  std::vector<std::vector<Cell>> apart(plan.n_sides);
  std::vector<const Cell*> of_class(plan.n_sides);
  const bool counts = tree_.rules().min_samples_leaf > 1;
  with_criterion(tree_.rules(), plan.n_sides, [&]<class C>() {
    using Weights = typename C::Weights;
    for (std::size_t i = 0; i < pass.feature.size(); ++i) {
      for (std::size_t k = 0; k < plan.n_sides; ++k) {
        const Cell* side = cells + k * pass.n_columns() * plan.n_codes;
        of_class[k] = cells_of(plan, pass, i, side, apart[k]);
      }
      const Feature feature = pass.feature[i];
      const auto f = static_cast<std::size_t>(feature);
      const bool categorical = windows_[f].categorical;
      const int sign = categorical || monotonic.empty() ? 0 : monotonic[f];
      const ClassJudge<C> judge(node, tree_, feature, sign);
      if (categorical) {
        const SetJudge<Weights> set_judge{
            [&](std::size_t n_left) { return judge.enough_rows(n_left); },
            [&, missing_left = true](const Weights& sure, const Weights& plain,
                                     const Weights& possible) {
              return judge.accepts(sure, plain, possible, &missing_left, best);
            }};
        search_sets(set_cells<Weights>(of_class, f), windows_[f], set_judge, counts, only_,
                    kCategorySmoothing / tree_.step(), node.total, best);
      } else {
        search_number(number_cells<Weights>(of_class, f), windows_[f], judge, counts, only_, best);
      }
    }
  });
}

template class ClassBins<ClassCounts>;
template class ClassBins<ClassWeights>;

}  // namespace hardwood::grow
