#include "hardwood/verify/merge.hpp"

#include <algorithm>
#include <iterator>
#include <limits>
#include <numeric>
#include <queue>

namespace hardwood::verify {
namespace {

constexpr std::size_t kMostLeaves = 30;    // of a product
constexpr std::size_t kMostPairs = 1200;   // of leaves that are looked at for one product
constexpr std::size_t kWork = 10'000'000;  // of leaves that are looked at in all

/// A factor while it is multiplied.
struct Block {
  std::vector<std::int32_t> scope;  // features
  std::vector<Cells> box;           // per leaf and feature
  std::vector<std::int32_t> share;  // per leaf and feature
  std::vector<std::int32_t> value;  // per leaf
  std::vector<std::int32_t> worth;  // per leaf
  std::vector<std::int32_t> node;   // per leaf and tree
  std::vector<std::int32_t> parts;  // trees
  std::int32_t best = 0;
  bool merged = false;  // into another

  std::size_t n_leaves() const { return value.size(); }
};

struct Shared {
  std::size_t a;  // positions in the two scopes
  std::size_t b;
};

struct Pair {
  double score;
  std::size_t a;
  std::size_t b;
  bool operator<(const Pair& other) const { return score > other.score; }  // the least on top
};

class Merger {
 public:
  Merger(Cut& cut, State& state, double budget) : cut_(cut), state_(state), budget_(budget) {}

  bool merge() {
    if (!read()) return false;
    for (std::size_t b = 0; b < blocks_.size(); ++b) {
      add_pairs(b);
      index(b);
    }
    bool any = false;
    while (!pairs_.empty()) {
      const Pair pair = pairs_.top();
      pairs_.pop();
      if (blocks_[pair.a].merged || blocks_[pair.b].merged) continue;
      any = true;
      if (!multiply(pair.a, pair.b)) {
        state_.bound = kNever;
        return false;
      }
      add_pairs(blocks_.size() - 1);
      index(blocks_.size() - 1);
    }
    if (any) write();
    return true;
  }

  bool compact() {
    if (!read()) return false;
    write();
    return true;
  }

 private:
  bool read();
  void write();
  void index(std::size_t b) {
    for (const std::int32_t f : blocks_[b].scope)
      blocks_of_[static_cast<std::size_t>(f)].push_back(b);
  }
  void add_pairs(std::size_t b);
  bool multiply(std::size_t a, std::size_t b);

  /// Whether two leaves can be those of one point of value `needed`.
  bool meet(const Block& a, std::size_t leaf_a, const Block& b, std::size_t leaf_b) const {
    const std::int64_t worth = std::int64_t{a.worth[leaf_a]} + b.worth[leaf_b];
    if (worth - a.best - b.best + state_.bound < state_.needed) return false;
    const Cells* box_a = a.box.data() + leaf_a * a.scope.size();
    const Cells* box_b = b.box.data() + leaf_b * b.scope.size();
    return std::ranges::all_of(shared_, [&](const Shared& at) {
      const auto f = static_cast<std::size_t>(a.scope[at.a]);
      if (const std::size_t n_words = cut_.n_words[f]; n_words > 0) {
        const Word* one = cut_.sets.at(box_a[at.a].lo);
        const Word* other = cut_.sets.at(box_b[at.b].lo);
        bool common = false;
        for (std::size_t w = 0; w < n_words; ++w) common |= (one[w] & other[w]) != 0;
        return common;
      }
      return box_a[at.a].lo <= box_b[at.b].hi && box_b[at.b].lo <= box_a[at.a].hi;
    });
  }
  void find_shared(const Block& a, const Block& b) {
    shared_.clear();
    for (std::size_t i = 0, j = 0; i < a.scope.size() && j < b.scope.size();) {
      if (a.scope[i] == b.scope[j]) shared_.push_back({i, j});
      const bool step_a = a.scope[i] <= b.scope[j];
      const bool step_b = b.scope[j] <= a.scope[i];
      i += step_a;
      j += step_b;
    }
  }
  bool affordable(const std::vector<std::int32_t>& scope, const Cells* box) const;

  Cut& cut_;
  State& state_;
  double budget_;
  std::vector<Block> blocks_;
  std::vector<std::vector<std::size_t>> blocks_of_;  // per feature
  std::vector<std::uint32_t> n_shared_;              // per block
  std::vector<Shared> shared_;
  std::priority_queue<Pair> pairs_;
  std::size_t work_ = 0;
};

/// Make blocks of what is left of the factors; false if nothing is left of one.
bool Merger::read() {
  blocks_.resize(cut_.factors.size());
  blocks_of_.resize(cut_.n_features());
  for (std::size_t t = 0; t < blocks_.size(); ++t) {
    const Cut::Factor& factor = cut_.factors[t];
    Block& block = blocks_[t];
    block.best = state_.best[t];
    const auto links = std::span(cut_.links)
                           .subspan(static_cast<std::size_t>(factor.link),
                                    static_cast<std::size_t>(factor.n_links));
    for (const Cut::Link& link : links) block.scope.push_back(link.feature);
    for (std::int32_t k = 0; k < state_.n_alive[t]; ++k) {
      const std::size_t first = static_cast<std::size_t>(factor.leaf);
      const std::size_t leaf = state_.alive[first + static_cast<std::size_t>(k)];
      const std::size_t n_boxes = block.box.size();
      bool inside = true;
      for (const Cut::Link& link : links) {
        const std::size_t id = cut_.id[link.id + leaf];
        const auto q = static_cast<std::size_t>(link.interval) + id;
        block.share.push_back(state_.share[q]);
        if (link.n_words > 0) {
          block.box.push_back({cut_.intervals[q].set(), 0});
          continue;
        }
        // Nobody asks for what lies outside of the state's cells: thresholds there are left out.
        const auto f = static_cast<std::size_t>(link.feature);
        const Cells cells = state_.cells[f];
        Cells range = cut_.range_of(link, id);
        inside &= range.lo <= cells.hi && range.hi >= cells.lo;
        if (range.lo <= cells.lo) range.lo = 0;
        if (range.hi >= cells.hi) range.hi = cut_.n_cells(f) - 1;
        block.box.push_back(range);
      }
      if (!inside) {
        block.box.resize(n_boxes);
        block.share.resize(n_boxes);
        continue;
      }
      block.value.push_back(cut_.value[first + leaf]);
      block.worth.push_back(state_.worth[first + leaf]);
      for (std::int32_t member = 0; member < factor.n_trees; ++member) {
        block.node.push_back(cut_.node_of(factor, leaf, member));
      }
    }
    if (block.n_leaves() == 0) {
      state_.bound = kNever;
      return false;
    }
    block.parts.resize(static_cast<std::size_t>(factor.n_trees));
    const std::int32_t best = *std::ranges::max_element(block.worth);
    state_.bound += best - block.best;
    block.best = best;
  }
  for (std::size_t i = 0; i < cut_.parts.size(); ++i) {
    const Cut::Part& part = cut_.parts[i];
    if (part.factor < 0) continue;
    blocks_[static_cast<std::size_t>(part.factor)].parts[static_cast<std::size_t>(part.member)] =
        static_cast<std::int32_t>(i);
  }
  return true;
}

/// Look at the products of a block with those before it.
void Merger::add_pairs(std::size_t b) {
  const Block& mine = blocks_[b];
  n_shared_.assign(b, 0);
  for (const std::int32_t f : mine.scope) {
    for (const std::size_t other : blocks_of_[static_cast<std::size_t>(f)]) ++n_shared_[other];
  }
  for (std::size_t a = 0; a < b; ++a) {
    const Block& other = blocks_[a];
    const std::size_t n_pairs = mine.n_leaves() * other.n_leaves();
    if (n_shared_[a] < 2 || other.merged || n_pairs > kMostPairs || work_ > kWork) continue;
    find_shared(other, mine);
    std::size_t n = 0;
    for (std::size_t i = 0; i < other.n_leaves() && n <= kMostLeaves; ++i) {
      for (std::size_t j = 0; j < mine.n_leaves(); ++j) n += meet(other, i, mine, j);
    }
    work_ += n_pairs;
    if (n > kMostLeaves) continue;
    const bool within = n_shared_[a] == std::min(mine.scope.size(), other.scope.size());
    pairs_.push({static_cast<double>(n) / static_cast<double>(n_pairs) - within, a, b});
  }
}

bool Merger::affordable(const std::vector<std::int32_t>& scope, const Cells* box) const {
  double cost = 0;
  for (std::size_t p = 0; p < scope.size(); ++p) {
    const auto f = static_cast<std::size_t>(scope[p]);
    Cells mine = box[p];
    if (cut_.n_words[f] == 0) {
      mine = {std::max(mine.lo, state_.cells[f].lo), std::min(mine.hi, state_.cells[f].hi)};
    }
    const std::int32_t nearest = cut_.nearest_cell(f, mine);
    cost += cut_.cost[static_cast<std::size_t>(cut_.cell_start[f] + nearest)];
  }
  return cost <= budget_;
}

/// Append the product of two blocks; false if no two leaves meet.
bool Merger::multiply(std::size_t at_a, std::size_t at_b) {
  Block product;
  Block& a = blocks_[at_a];
  Block& b = blocks_[at_b];
  std::ranges::set_union(a.scope, b.scope, std::back_inserter(product.scope));
  product.parts = a.parts;
  product.parts.insert(product.parts.end(), b.parts.begin(), b.parts.end());
  const std::size_t n_scope = product.scope.size();
  std::vector<Shared> from(n_scope);  // position in each scope, or its size where it is absent
  for (std::size_t p = 0; p < n_scope; ++p) {
    const auto position = [&](const std::vector<std::int32_t>& scope) {
      const auto found = std::ranges::lower_bound(scope, product.scope[p]);
      const bool here = found != scope.end() && *found == product.scope[p];
      return here ? static_cast<std::size_t>(found - scope.begin()) : scope.size();
    };
    from[p] = {position(a.scope), position(b.scope)};
  }
  find_shared(a, b);
  std::vector<Cells> box(n_scope);
  std::vector<std::int32_t> share(n_scope);
  const auto nodes_of = [](const Block& block, std::size_t leaf) {
    return std::span(block.node).subspan(leaf * block.parts.size(), block.parts.size());
  };
  for (std::size_t i = 0; i < a.n_leaves(); ++i) {
    for (std::size_t j = 0; j < b.n_leaves(); ++j) {
      if (!meet(a, i, b, j)) continue;
      for (std::size_t p = 0; p < n_scope; ++p) {
        const auto f = static_cast<std::size_t>(product.scope[p]);
        box[p] = cut_.whole(f);
        share[p] = 0;
        const auto add = [&](const Block& block, std::size_t leaf, std::size_t position) {
          if (position == block.scope.size()) return;
          const std::size_t at = leaf * block.scope.size() + position;
          if (const std::size_t n_words = cut_.n_words[f]; n_words > 0) {
            box[p].lo = cut_.sets.add_both(box[p].lo, block.box[at].lo, n_words, false);
          } else {
            box[p] = {std::max(box[p].lo, block.box[at].lo), std::min(box[p].hi, block.box[at].hi)};
          }
          share[p] = std::max(share[p] + block.share[at], kShareFloor);
        };
        add(a, i, from[p].a);
        add(b, j, from[p].b);
      }
      if (!affordable(product.scope, box.data())) continue;
      product.box.insert(product.box.end(), box.begin(), box.end());
      product.share.insert(product.share.end(), share.begin(), share.end());
      product.value.push_back(a.value[i] + b.value[j]);
      product.worth.push_back(std::max(a.worth[i] + b.worth[j], kWorthFloor));
      std::ranges::copy(nodes_of(a, i), std::back_inserter(product.node));
      std::ranges::copy(nodes_of(b, j), std::back_inserter(product.node));
    }
  }
  if (product.n_leaves() == 0) return false;
  product.best = *std::ranges::max_element(product.worth);
  state_.bound += product.best - a.best - b.best;
  a.merged = b.merged = true;
  blocks_.push_back(std::move(product));
  return true;
}

/// Lay the blocks out as factors; a share becomes the largest of the leaves that ask for its range.
void Merger::write() {
  std::erase_if(blocks_, [&](const Block& block) {
    if (!block.merged) state_.bound -= block.best;
    return block.merged;
  });
  FactorWriter::begin(cut_);
  FactorWriter writer;
  for (const Block& block : blocks_) {
    writer.add(cut_, block.scope, block.box, block.node, block.parts.size());
  }
  FactorWriter::end(cut_);
  state_.changed.assign(cut_.n_features(), 1);  // links may have gone
  state_.share.assign(cut_.intervals.size(), kShareFloor);
  state_.worth = cut_.value;
  state_.alive.resize(cut_.value.size());
  state_.n_alive.resize(blocks_.size());
  state_.best.resize(blocks_.size());
  for (std::size_t t = 0; t < blocks_.size(); ++t) {
    const Block& block = blocks_[t];
    const Cut::Factor& factor = cut_.factors[t];
    const auto first = static_cast<std::size_t>(factor.leaf);
    const std::size_t n_leaves = block.n_leaves();
    for (std::int32_t p = 0; p < factor.n_links; ++p) {
      const Cut::Link& link = cut_.links[static_cast<std::size_t>(factor.link + p)];
      const auto position = static_cast<std::size_t>(
          std::ranges::lower_bound(block.scope, link.feature) - block.scope.begin());
      const std::uint16_t* id = cut_.id.data() + link.id;
      std::int32_t* share = state_.share.data() + link.interval;
      for (std::size_t leaf = 0; leaf < n_leaves; ++leaf) {
        share[id[leaf]] =
            std::max(share[id[leaf]], block.share[leaf * block.scope.size() + position]);
      }
      for (std::size_t leaf = 0; leaf < n_leaves; ++leaf) {
        std::int32_t& worth = state_.worth[first + leaf];
        worth = std::max(worth + share[id[leaf]], kWorthFloor);
      }
    }
    const auto alive = state_.alive.begin() + factor.leaf;
    std::iota(alive, alive + factor.n_leaves, std::uint16_t{0});
    state_.n_alive[t] = factor.n_leaves;
    state_.best[t] = *std::max_element(state_.worth.begin() + factor.leaf,
                                       state_.worth.begin() + factor.leaf + factor.n_leaves);
    state_.bound += state_.best[t];
    for (std::size_t m = 0; m < block.parts.size(); ++m) {
      Cut::Part& part = cut_.parts[static_cast<std::size_t>(block.parts[m])];
      part.factor = static_cast<std::int32_t>(t);
      part.member = static_cast<std::int32_t>(m);
    }
  }
}

}  // namespace

bool merge_factors(Cut& cut, State& state, double budget) {
  return Merger(cut, state, budget).merge();
}

bool compact_factors(Cut& cut, State& state) {
  return Merger(cut, state, std::numeric_limits<double>::infinity()).compact();
}

}  // namespace hardwood::verify
