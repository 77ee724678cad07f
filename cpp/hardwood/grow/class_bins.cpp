#include "hardwood/grow/class_bins.hpp"

#include <array>
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
  bool any_missing = false;
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
    best.saw_missing = true;  // or there are none, and the heavier side gets them
    best.n_left = n_left(bin, missing_left);
  };

  if (any_missing) {  // Missing against present: no adversary moves a value below the lowest float.
    const Weights alone = with_missing(below[0]);
    consider(0, true, alone, alone, alone);
  }
  for (std::size_t bin = window.first; bin < window.last; ++bin) {
    const auto& sure = below[window.sure[bin]];
    const auto& plain = below[bin];
    const auto& possible = below[window.possible[bin]];
    consider(bin, false, sure, plain, possible);
    if (any_missing) {
      consider(bin, true, with_missing(sure), with_missing(plain), with_missing(possible));
    }
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
      search_feature<C>(of_class, feature, sign, node, best);
    }
  });
}

template class ClassBins<ClassCounts>;
template class ClassBins<ClassWeights>;

}  // namespace hardwood::grow
