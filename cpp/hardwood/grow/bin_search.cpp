#include "hardwood/grow/bin_search.hpp"

#include <algorithm>
#include <type_traits>

namespace hardwood::grow {
namespace {

constexpr std::size_t kMaxBins = 256;

/// Sums over the bins below each threshold.
template <class Stat>
struct Prefix {
  using Int = std::conditional_t<Stat::kCounts, std::int64_t, std::int32_t>;
  alignas(32) Int g[kMaxBins + 8];
  alignas(32) Int h[kMaxBins + 8];
  Int n[Stat::kCounts ? kMaxBins + 8 : 1];

  /// `cell(k)` is what bin k holds.
  template <class CellOf>
  void fill(std::size_t n_bins, CellOf&& cell) {
    typename Stat::Cell sum{};
    for (std::size_t k = 0; k <= n_bins; ++k) {
      const GridSum below = Stat::sum(sum);
      g[k] = static_cast<Int>(below.g);
      h[k] = static_cast<Int>(below.h);
      if constexpr (Stat::kCounts) n[k] = below.n;
      if (k < n_bins) sum += cell(k);
    }
  }

  GridSum operator[](std::size_t k) const {
    if constexpr (Stat::kCounts) return {g[k], h[k], n[k]};
    return {g[k], h[k], 0};
  }
};

template <class Stat>
class Search {
 public:
  Search(const FeatureBins<Stat>& bins, const SearchedNode& node, BinSplit& best)
      : bins_(bins), node_(node), best_(best), tells_signs_(bins.below && bins.window.moves) {
    const std::size_t n_bins = bins.window.sure.size();
    if (!bins.below) {
      all_.fill(n_bins, [&](std::size_t k) { return bins.cells[k]; });
      if (bins.has_missing) missing_ = Stat::sum(bins.cells[bins.missing_code]);
      return;
    }
    const auto both = [&](std::size_t k) {
      auto cell = bins.cells[k];
      return cell += bins.below[k];
    };
    all_.fill(n_bins, both);
    if (bins.has_missing) missing_ = Stat::sum(both(bins.missing_code));
    if (tells_signs_) {
      const bool join = node.total.g >= 0;  // rows with g >= 0 whose residual is below 0
      negative_.fill(n_bins, [&](std::size_t k) {
        auto cell = bins.below[k];
        if (bins.exceptions) join ? cell += bins.exceptions[k] : cell -= bins.exceptions[k];
        return cell;
      });
    }
  }

  void run() {
    // Sums of zero move no gain: where missing values go is then for others to say.
    const bool missing = missing_.g != 0 || missing_.h != 0;
    if (missing) judge(0, true);
    for (std::size_t k = bins_.window.first; k < bins_.window.last; ++k) {
      judge(k, false);
      if (missing) judge(k, true);
    }
  }

 private:
  bool beats(double gain, std::size_t k) const {
    if (best_.feature == kLeaf) return gain > NewtonCriterion::kLeastGain;
    return gain > best_.gain ||
           (gain == best_.gain && best_.feature == bins_.feature && k < best_.bin);
  }

  void judge(std::size_t k, bool missing_left) {
    const GridSum with = missing_left ? missing_ : GridSum{};
    const GridSum left = all_[k] + with;
    if constexpr (Stat::kCounts) {
      const auto least = static_cast<std::int64_t>(node_.rules.min_samples_leaf);
      if (left.n < least || node_.total.n - left.n < least) return;
    }
    const NewtonCriterion& criterion = node_.criterion;
    double gain = criterion.gain(node_.sums(left), node_.sums(node_.total - left));
    if (!beats(gain, k)) return;  // the adversary can only lower it
    const GridSum sure = all_[bins_.window.sure[k]] + with;
    const GridSum possible = all_[bins_.window.possible[k]] + with;
    const SplitSums split{node_.sums(sure), node_.sums(left - sure), node_.sums(possible - left),
                          node_.sums(node_.total - possible)};
    if (tells_signs_) {
      gain = criterion.sign_gain(
          split, node_.sums(negative_[bins_.window.possible[k]] - negative_[bins_.window.sure[k]]));
    } else {
      gain = criterion.paper_gain(split);
    }
    if (!beats(gain, k)) return;
    if (bins_.monotonic != 0 &&
        !criterion.keeps_order(bins_.monotonic, split.left(), split.right())) {
      return;
    }
    best_ = {bins_.feature, k, 0, missing_left, missing_.g != 0 || missing_.h != 0, gain, left};
  }

  const FeatureBins<Stat>& bins_;
  const SearchedNode& node_;
  BinSplit& best_;
  bool tells_signs_;
  GridSum missing_;
  Prefix<Stat> all_;
  Prefix<Stat> negative_;
};

}  // namespace

template <class Stat>
void search_bins(const FeatureBins<Stat>& bins, const SearchedNode& node, BinSplit& best) {
  Search<Stat>(bins, node, best).run();
}

template void search_bins<Packed>(const FeatureBins<Packed>&, const SearchedNode&, BinSplit&);
template void search_bins<Wide>(const FeatureBins<Wide>&, const SearchedNode&, BinSplit&);

}  // namespace hardwood::grow
