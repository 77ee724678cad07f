#include "hardwood/grow/class_bins.hpp"

#include <array>
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

}  // namespace

template <class S>
template <class C>
void ClassBins<S>::search_feature(std::span<const Cell* const> of_class, Feature feature,
                                  int monotonic, const ClassSearched& node,
                                  ClassBinSplit& best) const {
  using Weights = typename C::Weights;
  const auto f = static_cast<std::size_t>(feature);
  const Window& window = windows_[f];
  const std::size_t missing_code = binned_.missing_code();
  const ClassJudge<C> judge(node, tree_, feature, monotonic);
  const Prefix<Weights> below(Stat{}, of_class, window.n_bins);

  Weights missing{};
  if constexpr (requires { missing.resize(0); }) missing.resize(of_class.size());
  bool any_missing = window.blank;  // or could be
  for (std::size_t k = 0; binned_.has_missing(f) && k < of_class.size(); ++k) {
    missing[k] = Stat::weight(of_class[k][missing_code]);
    any_missing = any_missing || missing[k] > 0;
  }
  const auto with_missing = [&](typename Prefix<Weights>::View weights) {
    Weights sum(missing);
    for (std::size_t k = 0; k < sum.size(); ++k) sum[k] += weights[k];
    return sum;
  };
  const auto n_left = [&](std::size_t bin, bool missing_left) {
    std::size_t n = 0;
    for (const Cell* cells : of_class) {
      Cell sum = missing_left && any_missing ? cells[missing_code] : Cell{};
      for (std::size_t b = 0; b < bin; ++b) sum += cells[b];
      n += Stat::n_rows(sum);
    }
    return n;
  };
  const bool counts = tree_.rules().min_samples_leaf > 1;
  const auto consider = [&](std::size_t bin, bool missing_left, const auto& sure, const auto& plain,
                            const auto& possible) {
    if (counts && !judge.enough_rows(n_left(bin, missing_left))) return;
    if (!judge.accepts(sure, plain, possible, any_missing ? &missing_left : nullptr, best)) return;
    best.bin = bin;
    best.right_bins = {};
    best.saw_missing = true;  // or there are none, and the heavier side gets them
    best.n_left = n_left(bin, missing_left);
  };
  /// The weights of `other`, but of classes that are not moved those of `plain`.
  const auto moved = [&](const Weights& plain, const Weights& other) {
    Weights weights(plain);
    for (std::size_t k = 0; k < weights.size(); ++k) {
      if (moves(k)) weights[k] = other[k];
    }
    return weights;
  };

  if (any_missing) {  // Missing against present: no adversary moves a value below the lowest float.
    const Weights alone = with_missing(below[0]);
    const Weights all = with_missing(below[window.n_bins]);
    consider(0, true, alone, alone, window.blank ? moved(alone, all) : alone);
  }
  for (std::size_t bin = window.first; bin < window.last; ++bin) {
    const auto& sure = below[window.sure[bin]];
    const auto& plain = below[bin];
    const auto& possible = below[window.possible[bin]];
    if (only_ >= 0 || window.blank) {  // values that are removed go with the missing ones
      const auto as_weights = [](const auto& view) { return Weights(view.begin(), view.end()); };
      const auto from = [&](std::size_t b) {
        if constexpr (requires { missing.resize(0); }) {
          return as_weights(below[b]);
        } else {
          return below[b];
        }
      };
      const Weights here = from(bin), with = with_missing(plain);
      consider(bin, false, moved(here, from(window.blank ? 0 : window.sure[bin])), here,
               moved(here, from(window.possible[bin])));
      if (!any_missing) continue;
      consider(
          bin, true, moved(with, with_missing(sure)), with,
          moved(with, with_missing(below[window.blank ? window.n_bins : window.possible[bin]])));
      continue;
    }
    consider(bin, false, sure, plain, possible);
    if (any_missing) {
      consider(bin, true, with_missing(sure), with_missing(plain), with_missing(possible));
    }
  }
}

/// The same for sets of categories; see SetSearch in bin_search.cpp. Two classes have one order, by
/// the share of the second; more have one order a class.
template <class S>
template <class C>
void ClassBins<S>::search_sets(std::span<const Cell* const> of_class, Feature feature,
                               const ClassSearched& node, ClassBinSplit& best) const {
  using Weights = typename C::Weights;
  const auto f = static_cast<std::size_t>(feature);
  const Window& window = windows_[f];
  const std::size_t n_classes = of_class.size(), n_bins = window.n_bins;
  const ClassJudge<C> judge(node, tree_, feature, 0);
  const auto none = [&] {
    Weights weights{};
    if constexpr (requires { weights.resize(0); }) weights.resize(n_classes);
    return weights;
  };
  const auto cell = [&](std::size_t k, std::size_t bin) { return Stat::weight(of_class[k][bin]); };
  Weights missing = none(), present = none();
  bool any_missing = false;
  for (std::size_t k = 0; k < n_classes; ++k) {
    if (binned_.has_missing(f)) missing[k] = cell(k, binned_.missing_code());
    any_missing = any_missing || missing[k] > 0;
    for (std::size_t bin = 0; bin < n_bins; ++bin) present[k] += cell(k, bin);
  }
  const double all = std::accumulate(node.total.begin(), node.total.end(), 0.0);
  const double smoothing = kCategorySmoothing / tree_.step();

  SetWalk walk(window.changes, n_bins);
  Weights crossed = none();
  std::array<Weights, 2> ambiguous{none(), none()};  // right, left
  const auto consider = [&](bool turned) {
    Weights plain = none(), sure = none(), possible = none();
    for (std::size_t k = 0; k < n_classes; ++k) {
      const double others = present[k] - crossed[k];
      plain[k] = missing[k] + (turned ? others : crossed[k]);
      sure[k] = plain[k] - (moves(k) ? ambiguous[!turned][k] : 0);
      const double right = window.blank ? (turned ? crossed[k] : others) : ambiguous[turned][k];
      possible[k] = plain[k] + (moves(k) ? right : 0);
    }
    const auto n_left = [&] {
      std::size_t n = 0;
      for (const Cell* cells : of_class) {
        Cell sum = any_missing ? cells[binned_.missing_code()] : Cell{};
        for (std::size_t bin = 0; bin < n_bins; ++bin) {
          if (walk.is_left(bin) != turned) sum += cells[bin];
        }
        n += Stat::n_rows(sum);
      }
      return n;
    };
    if (tree_.rules().min_samples_leaf > 1 && !judge.enough_rows(n_left())) return;
    const bool missing_left = true;
    if (!judge.accepts(sure, plain, possible, &missing_left, best)) return;
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
    const double share = node.total[own] / all;
    const auto step_of = [&](std::span<const bins::Code> some) -> SetOrder::Step {
      double weight = 0, weight_of_own = 0;
      for (const bins::Code bin : some) {
        for (std::size_t k = 0; k < n_classes; ++k) weight += cell(k, bin);
        weight_of_own += cell(own, bin);
      }
      return {(weight_of_own - share * weight) / (weight + smoothing), weight > 0};
    };
    for_each_order(window.changes, n_bins, step_of, [&](const SetOrder& order) {
      walk.restart();
      crossed = ambiguous[0] = ambiguous[1] = none();
      for (std::size_t step = 0, at = 0; step + 1 < order.step_end.size(); ++step) {
        for (; at < order.step_end[step]; ++at) {
          const bins::Code bin = order.bins[at];
          for (std::size_t k = 0; k < n_classes; ++k) crossed[k] += cell(k, bin);
          walk.cross(bin, [&](bins::Code of, bool left, bool begins) {
            for (std::size_t k = 0; k < n_classes; ++k) {
              ambiguous[left][k] += begins ? cell(k, of) : -cell(k, of);
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

template <class S>
void ClassBins<S>::search(const HistogramPlan& plan, const Pass& pass, const Cell* cells,
                          std::span<const std::int8_t> monotonic, const ClassSearched& node,
                          ClassBinSplit& best, const Cell*) const {
  std::vector<std::vector<Cell>> apart(plan.n_sides);
  std::vector<const Cell*> of_class(plan.n_sides);
  with_criterion(tree_.rules(), plan.n_sides, [&]<class C>() {
    for (std::size_t i = 0; i < pass.feature.size(); ++i) {
      for (std::size_t k = 0; k < plan.n_sides; ++k) {
        const Cell* side = cells + k * pass.n_columns() * plan.n_codes;
        of_class[k] = cells_of(plan, pass, i, side, apart[k]);
      }
      const Feature feature = pass.feature[i];
      const int sign = monotonic.empty() ? 0 : monotonic[static_cast<std::size_t>(feature)];
      if (windows_[static_cast<std::size_t>(feature)].categorical) {
        search_sets<C>(of_class, feature, node, best);
      } else {
        search_feature<C>(of_class, feature, sign, node, best);
      }
    }
  });
}

template class ClassBins<ClassCounts>;
template class ClassBins<ClassWeights>;

}  // namespace hardwood::grow
