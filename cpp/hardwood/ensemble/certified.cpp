#include "hardwood/ensemble/certified.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>
#include <memory>
#include <numeric>
#include <stdexcept>
#include <string>
#include <type_traits>

#include "hardwood/ensemble/exact_sum.hpp"
#include "hardwood/parallel.hpp"

namespace hardwood::ensemble {
namespace {

constexpr std::size_t kBlock = 1 << 13;  // rows handled together
constexpr std::size_t kChunk = 512;      // of them, whose losses are taken together
constexpr std::size_t kLanes = 4;        // sums over rows that are made side by side
constexpr std::size_t kMostShares = 32;  // into which sums over rows are cut, for any n_threads

/// The rows of a block that can be pushed to each leaf; from the pool.
struct Reached {
  Pooled<std::uint32_t> start;  // of each leaf in `row`; of its rows that are pushed up; the end
  Pooled<std::uint16_t> row;    // places in the block
  std::uint32_t begin(std::size_t leaf) const { return start[2 * leaf]; }
  std::uint32_t middle(std::size_t leaf) const { return start[2 * leaf + 1]; }
  std::uint32_t end(std::size_t leaf) const { return start[2 * leaf + 2]; }
};
static_assert(kBlock <= 1 << 16);

/// A node as routing reads it.
struct Step {
  std::uint32_t candidate;
  bool has_missing, missing_left;
  const void* lower;                   // codes of its feature; null: a leaf
  std::array<std::uint32_t, 2> child;  // right, left; of a leaf: its number among the leaves
};

/// A leaf of the tree, with the limits of its value.
struct Leaf {
  NodeId node;
  double low, high;
};

/// One column of the round.
template <class Code>
class Output {
  using Codes = bins::EndCodes<Code>;

 public:
  Output(const Codes& codes, const CertifiedRound& round, std::size_t column, std::size_t n_rows,
         int n_threads, const Part& part, Pool& pool)
      : pool_(pool),
        codes_(codes),
        round_(round),
        column_(column),
        n_rows_(n_rows),
        n_threads_(n_threads),
        part_(part),
        reached_((codes.n_rows() + kBlock - 1) / kBlock) {}

  ~Output() {
    pool_.give_back(std::move(down_));
    for (Reached& reached : reached_) {
      pool_.give_back(std::move(reached.start));
      pool_.give_back(std::move(reached.row));
    }
  }
  Output(const Output&) = delete;
  Output& operator=(const Output&) = delete;

  grow::GrownTree step(std::uint64_t seed) {
    return with_loss(round_.loss, round_.loss_parameter, [&](const auto& loss) {
      grow::CertifiedRequest request;
      take_derivatives(loss, request);
      list_rows(request);
      request.weight = round_.weight;
      if (round_.features.n_rows > 0) request.features = round_.features.row(column_);
      request.monotonic = round_.monotonic;
      request.rules = round_.rules;
      request.seed = seed;
      request.n_threads = n_threads_;
      request.part = part_;
      // Of rows that do not train, the tree does not know.
      request.wants_leaf_rows = round_.sampled.empty();
      grow::CertifiedTree grown = grow_certified(codes_, std::move(request), pool_);
      g_sum_ = ExactSum(grown.g_total);
      h_sum_ = ExactSum(grown.h_total);
      loss_sum_ = ExactSum(total_loss(loss));
      round_.sampled.empty() ? take_reached(grown) : find_reached(grown);
      checkpoint();
      refit(loss, grown);
      for (float& value : grown.tree.value) value *= round_.learning_rate;
      add(grown.tree);
      return std::move(grown.tree);
    });
  }

  /// Add a tree whose thresholds are candidates to the ends of all rows.
  void add(const grow::CertifiedTree& grown) {
    find_reached(grown);
    add(grown.tree);
  }

 private:
  /// Rows at rest come after the others.
  std::size_t of_table(std::size_t row) const { return row < n_rows_ ? row : row - n_rows_; }
  float label(std::size_t row) const {
    const float y = round_.y[of_table(row)];
    return round_.low.n_cols == 1 ? y : static_cast<float>(y == static_cast<float>(column_));
  }
  float low(std::size_t row) const { return round_.low(row, column_); }
  float high(std::size_t row) const { return round_.high(row, column_); }
  float weight(std::size_t row) const { return round_.weight.empty() ? 1.0f : round_.weight[row]; }
  bool trains(std::size_t row) const {
    return round_.sampled.empty() || round_.sampled[of_table(row)];
  }

  /// Whether the lower margin is the worse one; where both are the same, the one that training
  /// wants to leave upwards.
  template <class Loss>
  static bool low_is_worse(const Loss& loss, float y, float low, float high) {
    if constexpr (Loss::kSided) return y > 0;
    const double at_low = loss.loss(y, low), at_high = loss.loss(y, high);
    return at_low == at_high ? loss.slope(y, low).gradient < 0 : at_low > at_high;
  }

  /// Derivatives at the worse end of every row.
  template <class Loss>
  void take_derivatives(const Loss& loss, grow::CertifiedRequest& request) {
    const std::size_t n = codes_.n_rows();
    request.slopes = pool_.take<float>(2 * n);
    float* const gradient = request.slopes.data();
    float* const hessian = gradient + n;
    down_ = pool_.take<std::uint8_t>(n);
    parallel_blocks(n, kChunk, n_threads_, [&](std::size_t begin, std::size_t end, int) {
      std::array<float, kChunk> y, margin;
      for (std::size_t i = begin; i < end; ++i) {
        const float of_row = label(i), ends[] = {high(i), low(i)};  // no branch: y is random
        const bool down = low_is_worse(loss, of_row, ends[1], ends[0]);
        y[i - begin] = of_row;
        margin[i - begin] = ends[down];
        down_[i] = down;
      }
      ensemble::look<Asked::kSlopes>(
          loss, end - begin, {y.data(), margin.data(), nullptr, gradient + begin, hessian + begin});
    });
  }

  /// About what the losses of the rows add up to.
  template <class Loss>
  double total_loss(const Loss& loss) const {
    return about_sum(codes_.n_rows(), n_threads_, part_, [&](std::size_t i) {
      if (!trains(i)) return 0.0;
      // The size of a logistic loss is known without looking.
      if constexpr (Loss::kSided) return double{weight(i)};
      return weight(i) * std::abs(loss.loss(label(i), down_[i] ? low(i) : high(i)));
    });
  }

  /// The rows that train in order, first those that the adversary pushes down.
  void list_rows(grow::CertifiedRequest& request) const {
    const std::size_t n = codes_.n_rows(), n_blocks = reached_.size();
    std::vector<std::size_t> place(2 * n_blocks + 1);  // of a block's rows pushed down, then up
    const auto for_block = [&](std::size_t b, auto&& body) {
      for (std::size_t i = b * kBlock; i < std::min((b + 1) * kBlock, n); ++i) {
        body(i, std::size_t{trains(i) && down_[i]}, std::size_t{trains(i) && !down_[i]});
      }
    };
    parallel_for(n_blocks, n_threads_, [&](std::size_t b, int) {
      std::size_t n_down = 0, n_up = 0;
      for_block(b, [&](std::size_t, std::size_t down, std::size_t up) {
        n_down += down;
        n_up += up;
      });
      place[b + 1] = n_down;
      place[n_blocks + b + 1] = n_up;
    });
    std::partial_sum(place.begin(), place.end(), place.begin());
    request.n_down = place[n_blocks];
    request.rows = pool_.take<std::uint32_t>(place.back());
    parallel_for(n_blocks, n_threads_, [&](std::size_t b, int) {
      // By way of the block's own lists: no branch, as directions are random.
      std::array<std::uint32_t, kBlock> downs, ups;
      std::size_t n_downs = 0, n_ups = 0;
      for_block(b, [&](std::size_t i, std::size_t down, std::size_t up) {
        downs[n_downs] = ups[n_ups] = static_cast<std::uint32_t>(i);
        n_downs += down;
        n_ups += up;
      });
      std::copy_n(downs.data(), n_downs, request.rows.data() + place[b]);
      std::copy_n(ups.data(), n_ups, request.rows.data() + place[n_blocks + b]);
    });
  }

  /// Which leaves rows reach, as the tree noted them while it grew.
  void take_reached(grow::CertifiedTree& grown) {
    leaves_.clear();
    for (std::size_t i = 0; i < grown.tree.feature.size(); ++i) {
      if (grown.tree.feature[i] == kLeaf) add_leaf(grown, i);
    }
    const std::vector<grow::LeafRows>& lists = grown.leaf_rows;
    const std::size_t n_blocks = reached_.size();
    // Where the rows of each block begin among those of a list that are pushed down, and up.
    const std::size_t n_bounds = n_blocks + 1;
    Pooled<std::uint32_t> bounds = pool_.take<std::uint32_t>(2 * lists.size() * n_bounds);
    parallel_for(2 * lists.size(), n_threads_, [&](std::size_t i, int) {
      const grow::LeafRows& list = lists[i / 2];
      const bool up = i % 2;
      find_bounds(list.rows.data(), up ? list.n_down : 0, up ? list.rows.size() : list.n_down,
                  {bounds.data() + i * n_bounds, n_bounds});
    });
    parallel_for(n_blocks, n_threads_, [&](std::size_t b, int) {
      const auto bound = [&](std::size_t i, std::size_t at) { return bounds[i * n_bounds + at]; };
      std::size_t n_rows = 0;
      for (std::size_t i = 0; i < 2 * lists.size(); ++i) n_rows += bound(i, b + 1) - bound(i, b);
      Reached& reached = reached_[b];
      reached.start = pool_.take<std::uint32_t>(2 * leaves_.size() + 1);
      reached.row = pool_.take<std::uint16_t>(n_rows);
      std::uint16_t* to = reached.row.data();
      for (std::size_t l = 0, first = 0, last = 0; l < leaves_.size(); ++l, first = last) {
        while (last < lists.size() && lists[last].leaf == leaves_[l].node) ++last;
        for (std::size_t up = 0; up < 2; ++up) {
          reached.start[2 * l + up] = static_cast<std::uint32_t>(to - reached.row.data());
          for (std::size_t k = first; k < last; ++k) {
            const std::uint32_t* const row = lists[k].rows.data();
            for (std::size_t e = bound(2 * k + up, b); e < bound(2 * k + up, b + 1); ++e) {
              *to++ = static_cast<std::uint16_t>(row[e] % kBlock);
            }
          }
        }
      }
      reached.start[2 * leaves_.size()] = static_cast<std::uint32_t>(n_rows);
    });
    pool_.give_back(std::move(bounds));
    for (grow::LeafRows& list : grown.leaf_rows) pool_.give_back(std::move(list.rows));
  }

  /// The first of rows [begin, end), which are increasing, in each block.
  static void find_bounds(const std::uint32_t* row, std::size_t begin, std::size_t end,
                          std::span<std::uint32_t> bounds) {
    std::size_t next = 0;  // block whose begin is to be found
    for (std::size_t e = begin; e < end; ++e) {
      for (; next * kBlock <= row[e]; ++next) bounds[next] = static_cast<std::uint32_t>(e);
    }
    for (; next < bounds.size(); ++next) bounds[next] = static_cast<std::uint32_t>(end);
  }

  void add_leaf(const grow::CertifiedTree& grown, std::size_t node) {
    leaves_.push_back({static_cast<NodeId>(node), grown.value_low[node], grown.value_high[node]});
  }

  /// The same for all rows, whether they train or not.
  void find_reached(const grow::CertifiedTree& grown) {
    const grow::GrownTree& tree = grown.tree;
    std::vector<Step> steps;
    leaves_.clear();
    for (std::size_t i = 0; i < tree.feature.size(); ++i) {
      if (tree.feature[i] == kLeaf) {
        steps.push_back(
            {0, false, false, nullptr, {static_cast<std::uint32_t>(leaves_.size()), 0}});
        add_leaf(grown, i);
        continue;
      }
      const auto f = static_cast<std::size_t>(tree.feature[i]);
      steps.push_back(
          {grown.candidate[i],
           codes_.has_missing(f),
           tree.missing_left[i] != 0,
           codes_.lower(f),
           {static_cast<std::uint32_t>(tree.right[i]), static_cast<std::uint32_t>(tree.left[i])}});
    }
    parallel_for(reached_.size(), n_threads_,
                 [&](std::size_t b, int) { find_reached(steps, b, reached_[b]); });
  }

  /// Send the rows of a block down the tree together, into both children where they can be sent
  /// there.
  void find_reached(const std::vector<Step>& steps, std::size_t b, Reached& reached) const {
    struct Open {
      std::uint32_t step;
      std::size_t begin, n_down, n;  // its rows in `rows`, first those that are pushed down
    };
    const std::size_t first = b * kBlock, n_rows = std::min(kBlock, codes_.n_rows() - first);
    const Code missing = codes_.missing_code();
    std::vector<std::uint16_t> rows(n_rows);
    std::array<std::uint16_t, kBlock> left;
    std::vector<Open> open{{0, 0, list_block(first, rows, left), n_rows}};
    std::vector<std::uint32_t> starts;  // as `Reached` has them
    std::vector<std::uint16_t> row_of;
    while (!open.empty()) {
      const auto [at, begin, n_down, n] = open.back();
      open.pop_back();
      const Step& step = steps[at];
      if (!step.lower) {
        // Leaves come in order; those that nobody reaches were passed over.
        const auto start = static_cast<std::uint32_t>(row_of.size());
        starts.resize(2 * step.child[0] + 2, start);
        starts.back() += static_cast<std::uint32_t>(n_down);
        row_of.insert(row_of.end(), rows.begin() + static_cast<std::ptrdiff_t>(begin),
                      rows.begin() + static_cast<std::ptrdiff_t>(begin + n));
        continue;
      }
      const Code* const lower = static_cast<const Code*>(step.lower) + first * Codes::kRowCodes;
      std::uint16_t* const right = rows.data() + begin;  // in place
      std::size_t n_left = 0, n_right = 0;
      const auto part = [&](auto has_missing, std::size_t from, std::size_t to) {
        for (std::size_t i = from; i < to; ++i) {
          const std::uint16_t row = right[i];
          const Code* const code = lower + row * Codes::kRowCodes;
          bool can_left = step.candidate >= code[0];
          bool can_right = step.candidate < code[Codes::kWidth];
          if (has_missing() && code[0] == missing) {
            can_left = step.missing_left;
            can_right = !can_left;
          }
          left[n_left] = row;  // no branch: sides are random
          right[n_right] = row;
          n_left += can_left;
          n_right += can_right;
        }
      };
      const auto part_rows = [&](std::size_t from, std::size_t to) {
        step.has_missing ? part(std::true_type{}, from, to) : part(std::false_type{}, from, to);
      };
      part_rows(0, n_down);
      const std::size_t n_left_down = n_left, n_right_down = n_right;
      part_rows(n_down, n);
      // The left child is next: its rows lie last, over the parent's.
      rows.resize(std::max(rows.size(), begin + n_right + n_left));
      std::copy_n(left.data(), n_left, rows.data() + begin + n_right);
      if (n_right > 0) open.push_back({step.child[0], begin, n_right_down, n_right});
      if (n_left > 0) open.push_back({step.child[1], begin + n_right, n_left_down, n_left});
    }
    starts.resize(2 * leaves_.size() + 1, static_cast<std::uint32_t>(row_of.size()));
    reached.start = pool_.take<std::uint32_t>(starts.size());
    reached.row = pool_.take<std::uint16_t>(row_of.size());
    std::ranges::copy(starts, reached.start.data());
    std::ranges::copy(row_of, reached.row.data());
  }

  /// The rows of a block, first those that are pushed down, whose number is returned.
  std::size_t list_block(std::size_t first, std::span<std::uint16_t> rows,
                         std::span<std::uint16_t> scratch) const {
    std::size_t n_down = 0, n_up = 0;
    for (std::size_t i = 0; i < rows.size(); ++i) {
      const bool down = down_.size() > 0 && down_[first + i];
      rows[n_down] = scratch[n_up] = static_cast<std::uint16_t>(i);
      n_down += down;
      n_up += !down;
    }
    std::copy_n(scratch.data(), n_up, rows.data() + n_down);
    return n_down;
  }

  using LeafOfRow = std::array<std::uint32_t, kBlock>;

  /// The leaf with the worst value of each row of a block: leaves are entered in the order of their
  /// values, and the last one stays. Rows that are pushed down enter `least`, the others `largest`.
  static void find_worst(const Reached& reached, std::span<const std::uint32_t> by_value,
                         LeafOfRow& least, LeafOfRow& largest) {
    const std::uint16_t* const row = reached.row.data();
    for (const std::uint32_t leaf : by_value) {
      for (std::uint32_t e = reached.middle(leaf); e < reached.end(leaf); ++e) {
        largest[row[e]] = leaf;
      }
    }
    for (std::size_t l = by_value.size(); l-- > 0;) {
      const std::uint32_t leaf = by_value[l];
      for (std::uint32_t e = reached.begin(leaf); e < reached.middle(leaf); ++e) {
        least[row[e]] = leaf;
      }
    }
  }

  /// The same for both ends of every row.
  static void find_ends(const Reached& reached, std::span<const std::uint32_t> by_value,
                        LeafOfRow& least, LeafOfRow& largest) {
    const std::uint16_t* const row = reached.row.data();
    const auto enter = [&](std::uint32_t leaf, LeafOfRow& to) {
      for (std::uint32_t e = reached.begin(leaf); e < reached.end(leaf); ++e) {
        to[row[e]] = leaf;
      }
    };
    for (const std::uint32_t leaf : by_value) enter(leaf, largest);
    for (std::size_t l = by_value.size(); l-- > 0;) enter(by_value[l], least);
  }

  /// Leaves in the order of their values.
  static std::vector<std::uint32_t> sorted(std::span<const float> value) {
    std::vector<std::uint32_t> by_value(value.size());
    std::iota(by_value.begin(), by_value.end(), std::uint32_t{0});
    std::ranges::stable_sort(by_value, {}, [&](std::uint32_t leaf) { return value[leaf]; });
    return by_value;
  }

  /// Newton steps on all leaves, each row in its worst one; the best values on the way are kept.
  template <class Loss>
  void refit(const Loss& loss, grow::CertifiedTree& grown) {
    std::vector<float> value, best;
    for (const Leaf& leaf : leaves_) {
      value.push_back(grown.tree.value[static_cast<std::size_t>(leaf.node)]);
    }
    double least = std::numeric_limits<double>::infinity();
    for (int k = 0; round_.n_refits > 0; ++k) {
      const bool last = k == round_.n_refits;  // nobody asks for the slopes
      const double now = last ? look<Asked::kLosses>(loss, value) : look<Asked::kBoth>(loss, value);
      if (now < least) least = now, best = value;
      if (last) break;
      const double damping = 1 / (1 + 0.5 * k);
      const std::vector<double> best_alone = wanted_values(loss, value);
      for (std::size_t l = 0; l < leaves_.size(); ++l) {
        const double wanted = std::clamp(best_alone[l], leaves_[l].low, leaves_[l].high);
        value[l] = static_cast<float>(value[l] + damping * (wanted - double{value[l]}));
      }
    }
    if (round_.n_refits > 0) value = best;
    for (std::size_t l = 0; l < leaves_.size(); ++l) {
      grown.tree.value[static_cast<std::size_t>(leaves_[l].node)] = value[l];
    }
  }

  struct LeafSums {
    double g = 0, h = 0;
  };

  /// A row's worst reachable leaf and its margin there.
  struct Worst {
    std::uint32_t leaf;
    float margin;
  };

  /// The objective with these values; derivatives by them, or the residuals of their rows, are
  /// kept if they are asked for.
  template <Asked kAsked, class Loss>
  double look(const Loss& loss, std::span<const float> value) {
    const std::size_t n_blocks = reached_.size(), n_leaves = leaves_.size();
    const std::size_t n_shares = std::min(kMostShares, n_blocks);
    const std::vector<std::uint32_t> by_value = sorted(value);
    std::vector<double> losses(n_shares);
    // Several of each leaf, so that no addition waits for the one before.
    std::vector<std::vector<LeafSums>> sums(n_shares, std::vector<LeafSums>(kLanes * n_leaves));
    worst_leaf_.resize(std::is_same_v<Loss, Quantile> ? codes_.n_rows() : 0);
    parallel_for(n_shares, n_threads_, [&](std::size_t share, int) {
      double total = 0;
      const auto scratch = std::make_unique<Scratch>();
      for (std::size_t b = n_blocks * share / n_shares; b < n_blocks * (share + 1) / n_shares;
           ++b) {
        if constexpr (Loss::kSided) {
          find_worst(reached_[b], by_value, scratch->least, scratch->least);
        } else {
          find_ends(reached_[b], by_value, scratch->least, scratch->largest);
        }
        const std::size_t end = std::min((b + 1) * kBlock, codes_.n_rows());
        for (std::size_t i = b * kBlock; i < end; i += kChunk) {
          total +=
              look_at<kAsked>(loss, value, i, std::min(i + kChunk, end), sums[share], *scratch);
        }
      }
      losses[share] = total;
    });
    sums_.assign(n_leaves, {});
    for (const std::vector<LeafSums>& part : sums) {
      for (std::size_t k = 0; k < part.size(); ++k) {
        sums_[k / kLanes].g += part[k].g;
        sums_[k / kLanes].h += part[k].h;
      }
    }
    double objective = std::accumulate(losses.begin(), losses.end(), 0.0);
    if (part_.others) objective = look_at_parts(objective);
    if constexpr (!std::is_same_v<Loss, Quantile>) {
      for (const float w : value) {
        objective += round_.rules.reg_lambda / 2 * w * w + round_.rules.reg_alpha * std::abs(w);
      }
    }
    return objective;
  }

  /// Add up `sums_` over all parts; gives the loss of all.
  double look_at_parts(double total_loss) {
    std::vector<std::int64_t> wire{loss_sum_.whole(total_loss)};
    for (const LeafSums& sum : sums_) {
      wire.insert(wire.end(), {g_sum_.whole(sum.g), h_sum_.whole(sum.h)});
    }
    part_.sum(wire);
    for (std::size_t l = 0; l < sums_.size(); ++l) {
      sums_[l] = {g_sum_.sum(wire[2 * l + 1]), h_sum_.sum(wire[2 * l + 2])};
    }
    return loss_sum_.sum(wire[0]);
  }

  /// Memory for the rows of a block, and of a chunk of it.
  struct Scratch {
    LeafOfRow least, largest;  // where the direction is known, the worst one is in `least`
    std::array<std::uint32_t, kChunk> leaf;
    std::array<float, kChunk> y, margin, gradient, hessian;
    std::array<double, kChunk> loss;
  };

  /// Rows [begin, end), in their worst leaves.
  template <Asked kAsked, class Loss>
  double look_at(const Loss& loss, std::span<const float> value, std::size_t begin, std::size_t end,
                 std::vector<LeafSums>& sums, Scratch& at) {
    for (std::size_t i = begin; i < end; ++i) {
      const std::size_t k = i - begin;
      const float y = label(i);
      const std::uint32_t least = at.least[i % kBlock];
      const std::uint32_t largest = Loss::kSided ? least : at.largest[i % kBlock];
      const float ends[] = {high(i) + value[largest], low(i) + value[least]};
      const bool down = low_is_worse(loss, y, ends[1], ends[0]);
      at.y[k] = y;
      at.leaf[k] = down ? least : largest;
      at.margin[k] = ends[down];  // no branch: y is random
      if constexpr (std::is_same_v<Loss, Quantile>) worst_leaf_[i] = {at.leaf[k], at.margin[k]};
    }
    ensemble::look<kAsked>(
        loss, end - begin,
        {at.y.data(), at.margin.data(), at.loss.data(), at.gradient.data(), at.hessian.data()});
    std::array<double, kLanes> total{};  // exact, so lanes give the same
    const auto add = [&, g_sum = g_sum_, h_sum = h_sum_, loss_sum = loss_sum_](
                         std::size_t k, auto&&... weight_of) {
      total[k % kLanes] += loss_sum.term(weight_of..., at.loss[k]);
      if constexpr (kAsked == Asked::kBoth) {
        LeafSums& sum = sums[at.leaf[k] * kLanes + k % kLanes];
        sum.g += g_sum.term(weight_of..., double{at.gradient[k]});
        sum.h += h_sum.term(weight_of..., double{at.hessian[k]});
      } else {
        static_cast<void>(g_sum), static_cast<void>(h_sum);  // Clang warns of captures nobody reads
      }
    };
    if (round_.weight.empty() && round_.sampled.empty()) {
      for (std::size_t k = 0; k < end - begin; ++k) add(k);
    } else {
      for (std::size_t i = begin; i < end; ++i) {
        if (trains(i)) add(i - begin, double{weight(i)});
      }
    }
    return std::accumulate(total.begin(), total.end(), 0.0);
  }

  /// Where the values of leaves would be best, their rows staying in them.
  template <class Loss>
  std::vector<double> wanted_values(const Loss&, std::span<const float> value) const {
    const double lambda = round_.rules.reg_lambda, alpha = round_.rules.reg_alpha;
    std::vector<double> wanted;
    for (std::size_t l = 0; l < leaves_.size(); ++l) {
      const double h = sums_[l].h, pull = h * value[l] - sums_[l].g;
      const double soft = pull > alpha ? pull - alpha : pull < -alpha ? pull + alpha : 0.0;
      wanted.push_back(h + lambda > 0 ? soft / (h + lambda) : 0.0);
    }
    return wanted;
  }
  /// A quantile of the residuals of each leaf: by bisection over the floats, which are as integers
  /// in the same order, so that parts tell each other weights only. Hessians are 1, so that their
  /// sum is the weight of a leaf.
  std::vector<double> wanted_values(const Quantile& loss, std::span<const float> value) const {
    struct Residual {
      std::int64_t key;
      std::uint32_t leaf;
      std::int64_t weight;
    };
    std::vector<Residual> residuals;
    for (std::size_t i = 0; i < codes_.n_rows(); ++i) {
      if (!trains(i)) continue;
      const auto bits = std::bit_cast<std::int32_t>(label(i) - worst_leaf_[i].margin);
      residuals.push_back({bits < 0 ? -std::int64_t{bits & 0x7fffffff} : bits, worst_leaf_[i].leaf,
                           h_sum_.whole(h_sum_.term(double{weight(i)}, 1.0))});
    }
    const std::size_t n_leaves = leaves_.size();
    constexpr std::int64_t kLargest =
        std::bit_cast<std::int32_t>(std::numeric_limits<float>::max());
    std::vector<std::int64_t> least(n_leaves, -kLargest), most(n_leaves, kLargest), middle, below;
    while (least != most) {
      middle.clear();
      // Halved downwards, below zero, too.
      for (std::size_t l = 0; l < n_leaves; ++l) middle.push_back((least[l] + most[l]) >> 1);
      below.assign(n_leaves, 0);
      for (const Residual& residual : residuals) {
        if (residual.key <= middle[residual.leaf]) below[residual.leaf] += residual.weight;
      }
      part_.sum(below);
      for (std::size_t l = 0; l < n_leaves; ++l) {
        if (least[l] == most[l]) continue;
        const bool enough = h_sum_.sum(below[l]) >= loss.share * sums_[l].h * (1 - 1e-12);
        (enough ? most : least)[l] = enough ? middle[l] : middle[l] + 1;
      }
    }
    std::vector<double> wanted;
    for (std::size_t l = 0; l < n_leaves; ++l) {
      const auto size = std::bit_cast<float>(static_cast<std::int32_t>(std::abs(most[l])));
      const double residual = most[l] < 0 ? -double{size} : double{size};
      wanted.push_back(sums_[l].h > 0 ? value[l] + residual : double{value[l]});
    }
    return wanted;
  }

  /// Add the finished tree to the ends of all rows.
  void add(const grow::GrownTree& tree) {
    std::vector<float> value;
    for (const Leaf& leaf : leaves_) {
      value.push_back(tree.value[static_cast<std::size_t>(leaf.node)]);
    }
    const std::vector<std::uint32_t> by_value = sorted(value);
    parallel_for(reached_.size(), n_threads_, [&](std::size_t b, int) {
      LeafOfRow least, largest;
      find_ends(reached_[b], by_value, least, largest);
      for (std::size_t i = b * kBlock; i < std::min((b + 1) * kBlock, codes_.n_rows()); ++i) {
        round_.low(i, column_) += value[least[i % kBlock]];
        round_.high(i, column_) += value[largest[i % kBlock]];
      }
    });
  }

  Pool& pool_;
  const Codes& codes_;
  const CertifiedRound& round_;
  std::size_t column_;
  std::size_t n_rows_;
  int n_threads_;
  Part part_;
  Pooled<std::uint8_t> down_;
  std::vector<Reached> reached_;  // of each block of rows
  std::vector<Leaf> leaves_;
  std::vector<LeafSums> sums_;  // of each leaf, see look
  ExactSum g_sum_, h_sum_, loss_sum_;
  std::vector<Worst> worst_leaf_;  // of each row, for quantiles
};

void check(const CertifiedRound& round, std::size_t n_table_rows, std::size_t n_code_rows,
           std::size_t n_features) {
  const auto need = [](const char* name, std::size_t wanted, std::size_t got) {
    if (got == wanted) return;
    throw std::invalid_argument(std::string(name) + " needs " + std::to_string(wanted) +
                                " entries, got " + std::to_string(got) + ".");
  };
  need("y", n_table_rows, round.y.size());
  need("low", n_code_rows, round.low.n_rows);
  need("high", n_code_rows, round.high.n_rows);
  need("high", round.low.n_cols, round.high.n_cols);
  if (!round.weight.empty()) need("weight", n_code_rows, round.weight.size());
  if (!round.sampled.empty()) need("sampled", n_table_rows, round.sampled.size());
  if (!round.monotonic.empty()) need("monotonic", n_features, round.monotonic.size());
  const std::size_t n_drawn = round.features.n_cols;
  if (round.features.n_rows > 0) need("features", round.low.n_cols, round.features.n_rows);
  for (std::size_t i = 0; i < round.features.n_rows * n_drawn; ++i) {
    const Feature feature = round.features.data[i];
    if (feature < 0 || static_cast<std::size_t>(feature) >= n_features ||
        (i % n_drawn > 0 && feature <= round.features.data[i - 1])) {
      throw std::invalid_argument(
          "features must be increasing and from 0 to " + std::to_string(n_features - 1) + ", got " +
          std::to_string(feature) + " at position " + std::to_string(i % n_drawn) + ".");
    }
  }
}

}  // namespace

template <class Code>
std::vector<grow::GrownTree> CertifiedBoosting<Code>::step(const CertifiedRound& round) {
  check(round, n_rows_, codes_.n_rows(), codes_.n_features());
  const std::lock_guard guard(busy_);
  const int n_threads = std::max(round.rules.n_threads, 1);
  const std::size_t n_outputs = round.low.n_cols;
  while (pools_.size() < static_cast<std::size_t>(n_threads)) pools_.emplace_back();
  std::vector<grow::GrownTree> trees(n_outputs);
  const auto grow_one = [&](std::size_t k, std::size_t slot, int threads) {
    trees[k] = Output<Code>(codes_, round, k, n_rows_, threads, part(), pools_[slot])
                   .step(round.seed * n_outputs + k + 1);
  };
  // A tree a thread needs no waiting for each other; the trees that are left over are shared. Parts
  // ask each other on one thread.
  const bool alone = n_threads > 1 && !others_;
  const std::size_t n_alone = alone ? n_outputs - n_outputs % std::size_t(n_threads) : 0;
  parallel_for(n_alone, n_threads, [&](std::size_t k, int thread) {
    grow_one(k, static_cast<std::size_t>(thread), 1);
  });
  for (std::size_t k = n_alone; k < n_outputs; ++k) grow_one(k, 0, n_threads);
  return trees;
}

template <class Code>
void CertifiedBoosting<Code>::add(const model::Trees& trees, Matrix<float> low, Matrix<float> high,
                                  int n_threads) const {
  CertifiedRound round;
  round.low = low;
  round.high = high;
  if (low.n_rows != codes_.n_rows() || high.n_rows != codes_.n_rows() ||
      low.n_cols != trees.n_outputs() || high.n_cols != trees.n_outputs()) {
    throw std::invalid_argument("low and high need one entry a row and output.");
  }
  Pool pool;
  for (std::size_t k = 0; k < trees.n_trees(); ++k) {
    grow::CertifiedTree grown;
    const auto end = static_cast<std::size_t>(trees.tree_start[k + 1]);
    for (auto i = static_cast<std::size_t>(trees.tree_start[k]); i < end; ++i) {
      grown.tree.feature.push_back(trees.feature[i]);
      grown.tree.left.push_back(trees.left[i]);
      grown.tree.right.push_back(trees.right[i]);
      grown.tree.missing_left.push_back(trees.missing_left[i]);
      grown.tree.value.push_back(static_cast<float>(trees.value[i]));
      grown.candidate.push_back(0);
      if (trees.feature[i] == kLeaf) continue;
      grown.candidate.back() = static_cast<std::uint32_t>(
          codes_.candidate(static_cast<std::size_t>(trees.feature[i]), trees.threshold[i]));
    }
    grown.value_low.resize(grown.candidate.size());
    grown.value_high.resize(grown.candidate.size());
    const auto column = static_cast<std::size_t>(trees.tree_output[k]);
    Output<Code>(codes_, round, column, n_rows_, n_threads, {}, pool).add(grown);
  }
}

template class CertifiedBoosting<std::uint8_t>;
template class CertifiedBoosting<std::uint16_t>;

}  // namespace hardwood::ensemble
