#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <vector>

#include "hardwood/cells/ball.hpp"

namespace hardwood::verify {

using cells::Ball;
using cells::Cells;
using cells::Ensemble;
using cells::Norm;
using cells::Property;
using cells::Question;
using cells::Word;

/// How far a sum in floating point can be from the true one, for terms known up to a range.
struct SumError {
  double lo;
  double hi;
  double reach = 0;  ///< sum of the largest absolute partial sums
  double size = 0;   ///< sum of the largest absolute terms

  explicit SumError(double base) : lo(base), hi(base), size(std::abs(base)) {}
  void add(double low, double high) {
    lo += low;
    hi += high;
    reach += std::max(std::abs(lo), std::abs(hi));
    size += std::max(std::abs(low), std::abs(high));
  }
};

/// The part of a model that one ball touches, for one question.
///
/// Features keep the thresholds that some tree still splits on inside the ball; a cell here is a
/// run of the model's cells that no such tree tells apart. A tree with one leaf left is a constant;
/// a tree on one feature is added to `alone`; every other tree is a factor, whose leaves are values
/// with a range of cells a feature.
///
/// Where a feature has places, a cell is a class of places that no such tree tells apart, the
/// nearest first, and leaves have a set of cells: a box holds its number in `sets` as `lo`.
///
/// Values are whole numbers of `unit`, rounded up and counted from the best leaf of their tree (so
/// they are <= 0): the true plus - minus of a point is at most constant + unit * its value here,
/// and whole numbers lose nothing when they are shifted between trees. A row is fooled only where
/// the value is at least `needed`.
struct Cut {
  struct Node {
    std::int32_t feature;  ///< kLeaf for leaves
    std::int32_t rank;     ///< left when cell <= rank; below 0: when it is in the set ~rank
    std::int32_t left;
    std::int32_t right;
    std::int32_t value;
  };
  struct Factor {
    std::int32_t leaf;  ///< the first of its leaves
    std::int32_t n_leaves;
    std::int32_t link;  ///< the first of its links
    std::int32_t n_links;
    std::int32_t node;     ///< where the nodes of its leaves are kept
    std::int32_t n_trees;  ///< that were multiplied into it: a leaf has one node of each
  };
  /// A factor on one of its features. The factor's own thresholds cut the feature into atoms; its
  /// leaves ask for intervals of atoms, of which few are distinct.
  struct Link {
    std::int32_t factor;
    std::int32_t feature;
    std::int32_t interval;  ///< the first of its distinct intervals
    std::int32_t n_intervals;
    std::int32_t atom;  ///< the first of its atoms: n_atoms + 1 ends in `atom_cell`
    std::int32_t n_atoms;
    std::int32_t leaf;        ///< the first leaf of the factor
    std::size_t id;           ///< where the interval of each leaf is kept
    std::size_t n_words = 0;  ///< of sets of atoms, which are cells then; 0: intervals

    /// Two atoms, as most links have: then the intervals are below, both and above, in this order.
    bool one_threshold() const { return n_atoms == 2 && n_words == 0; }
  };
  /// A tree of the question, in the model's order: one leaf, a tree on one feature, or a factor.
  struct Part {
    std::int32_t root = -1;
    std::int32_t factor = -1;
    std::int32_t member = 0;  ///< which of the trees of its factor
    double plus = 0;
    double minus = 0;
  };
  /// An interval of atoms or, where the link has sets, the number of a set.
  struct Atoms {
    std::uint16_t lo;
    std::uint16_t hi;

    static Atoms of_set(std::int32_t set) {
      const auto bits = static_cast<std::uint32_t>(set);
      return {static_cast<std::uint16_t>(bits & 0xffff), static_cast<std::uint16_t>(bits >> 16)};
    }
    std::int32_t set() const {
      return static_cast<std::int32_t>(std::uint32_t{lo} | std::uint32_t{hi} << 16);
    }
  };

  bool empty = true;  ///< already the plain bound is below what is needed
  double constant = 0;
  double unit = 1;
  std::int64_t needed = 0;
  std::int64_t zero = 0;  ///< what would be needed if the model's own sum did not round

  double own_error = 0;  ///< of the sums and differences formed here, in double
  /// What a point's value must be, if the model's own sum is at most `error` away from the true
  /// one.
  std::int64_t needed_for(double error) const {
    const double units = std::floor((constant + own_error + error) / unit);
    return -static_cast<std::int64_t>(std::clamp(units, -0x1p62, 0x1p62));
  }

  Question question{};
  std::vector<Part> parts;
  std::vector<std::int32_t> feature;     ///< of the model
  std::vector<std::int32_t> cell_start;  ///< cells of feature f: [cell_start[f], cell_start[f + 1])
  std::vector<std::int32_t> cell;        ///< the model's cell nearest to the row
  std::vector<double> step;              ///< counted step into the cell
  std::vector<double> cost;              ///< what it adds to the total of a norm that sums
  std::vector<std::int32_t> home;        ///< per feature: the cell of the row itself
  std::vector<std::int64_t> alone;       ///< value of the trees on this feature only, per cell
  std::vector<std::uint8_t> alone_ends;  ///< whether one of them tells a cell from the next

  std::vector<std::size_t> n_words;       ///< per feature: of its sets of cells; 0: it has ranges
  std::vector<std::int32_t> all;          ///< per feature with sets: all cells
  cells::SetPool sets;                    ///< of cells
  std::vector<std::int32_t> place_start;  ///< per feature, into place_cell
  std::vector<std::int32_t> place_cell;   ///< the cell of every place within reach

  std::vector<double> plus;  ///< per node: what a leaf adds to the two outputs, unrounded
  std::vector<double> minus;
  std::vector<Node> nodes;                ///< trees with two or more leaves, to read values from
  std::vector<std::int32_t> roots;        ///< of those on two or more features
  std::vector<std::int32_t> root_start;   ///< per feature, into root_of
  std::vector<std::int32_t> root_of;      ///< positions in roots
  std::vector<std::int32_t> scope_start;  ///< per root, into scope
  std::vector<std::int32_t> scope;        ///< features of a root's tree

  std::vector<Factor> factors;
  std::vector<Link> links;
  std::vector<std::int32_t> link_start;  ///< per feature, into link_of
  std::vector<std::int32_t> link_of;
  std::vector<Atoms> intervals;
  std::vector<std::int32_t> atom_cell;
  std::vector<std::uint16_t> id;
  std::vector<std::int32_t> value;      ///< of the leaves of factors
  std::vector<std::int32_t> leaf_node;  ///< the nodes of each, one a tree

  std::int32_t node_of(const Factor& t, std::size_t leaf, std::int32_t member) const {
    return leaf_node[static_cast<std::size_t>(t.node + member) +
                     leaf * static_cast<std::size_t>(t.n_trees)];
  }
  bool goes_left(const Node& node, std::int32_t at) const {
    return node.rank >= 0 ? at <= node.rank : cells::has_bit(sets.at(~node.rank), at);
  }
  std::span<const Word> set(std::size_t f, std::int32_t number) const {
    return {sets.at(number), n_words[f]};
  }
  std::span<const Word> set_of(const Link& link, std::size_t q) const {
    return {sets.at(intervals[static_cast<std::size_t>(link.interval) + q].set()), link.n_words};
  }
  /// The cells of an interval of a link.
  Cells range_of(const Link& link, std::size_t q) const {
    const auto [lo, hi] = intervals[static_cast<std::size_t>(link.interval) + q];
    const std::int32_t* start = atom_cell.data() + link.atom;
    return {start[lo], start[hi + 1] - 1};
  }
  /// The smallest range of cells around an interval, or around what a set has `among` some.
  Cells hull(const Link& link, std::size_t q, Cells among) const {
    if (link.n_words == 0) return range_of(link, q);
    const Word* words = set_of(link, q).data();
    while (among.lo <= among.hi && !cells::has_bit(words, among.lo)) ++among.lo;
    while (among.lo <= among.hi && !cells::has_bit(words, among.hi)) --among.hi;
    return among;
  }
  /// All cells of a feature, as a box.
  Cells whole(std::size_t f) const {
    return n_words[f] > 0 ? Cells{all[f], 0} : Cells{0, n_cells(f) - 1};
  }
  /// The nearest cell of a box.
  std::int32_t nearest_cell(std::size_t f, Cells box) const {
    return n_words[f] > 0 ? cells::first_bit(set(f, box.lo)) : std::clamp(home[f], box.lo, box.hi);
  }
  std::size_t n_features() const { return feature.size(); }
  std::int32_t n_cells(std::size_t f) const { return cell_start[f + 1] - cell_start[f]; }
  std::span<const std::int32_t> links_of(std::size_t f) const {
    return {link_of.data() + link_start[f],
            static_cast<std::size_t>(link_start[f + 1] - link_start[f])};
  }
  std::span<const std::int32_t> scope_of(std::size_t root) const {
    return {scope.data() + scope_start[root],
            static_cast<std::size_t>(scope_start[root + 1] - scope_start[root])};
  }
  std::span<const std::int32_t> roots_of(std::size_t f) const {
    return {root_of.data() + root_start[f],
            static_cast<std::size_t>(root_start[f + 1] - root_start[f])};
  }
};

/// A value that no sum of others can lift to what is needed.
inline constexpr std::int64_t kNever = -(std::int64_t{1} << 44);

/// Lays out the factors of a cut, one after the other.
class FactorWriter {
 public:
  static void begin(Cut& cut);
  /// Leaves with a box of cells per feature of the scope, and a node a tree.
  void add(Cut& cut, std::span<const std::int32_t> scope, std::span<const Cells> box,
           std::span<const std::int32_t> node, std::size_t n_trees);
  /// Index what was added by feature.
  static void end(Cut& cut);

 private:
  void add_link(Cut& cut, std::int32_t feature, std::span<const Cells> box, std::size_t position,
                std::size_t n_scope);
  void add_set_link(Cut& cut, std::int32_t feature, std::span<const Cells> box,
                    std::size_t position, std::size_t n_scope);

  std::vector<std::int32_t> atom_at_;
  std::vector<std::uint32_t> key_;  // interval of each leaf: first and last atom
  std::vector<std::uint32_t> distinct_;
};

/// Makes cuts; keeps its memory from one to the next.
class CutBuilder {
 public:
  explicit CutBuilder(const Ensemble& ensemble);

  /// Where to cut: at the ball of `radius` (in any norm: the box around it). Leaves to which all
  /// ways cost more than `budget`, in a norm that sums, are left out; costs are counted in `unit`.
  struct Within {
    double radius;
    double budget = std::numeric_limits<double>::infinity();
    double unit = 1;
    std::optional<std::span<const std::int32_t>> changing = {};  ///< features; none: all of them
  };
  void build(const Ball& ball, const Question& question, std::span<const Ensemble::Member> members,
             const Within& within, Cut& cut);

 private:
  struct Tree {
    std::int32_t root;
    std::int32_t first_node;
    std::int32_t end_node;
    std::int32_t part;
    double best;
  };
  struct Range {  // of the values of one tree in one output
    double lo;
    double hi;
  };
  /// Leaves of a factor before it is laid out: `n_scope` features, a box of cells a leaf.
  struct Table {
    std::size_t scope;
    std::size_t n_scope;
    std::size_t leaf;
    std::size_t n_leaves;
    std::size_t box;
  };

  void hold_others(std::span<const std::int32_t> changing);
  std::int32_t visit(std::int32_t at, const Ensemble::Member& member, Cut& cut);
  std::int32_t add_node(std::int32_t feature, std::int32_t rank, Cut& cut);
  bool divide(std::int32_t at, std::size_t f, bool& left);
  void name_places(const Ball& ball, std::size_t local, double unit, Cut& cut);
  void add_cell(const Ball& ball, std::size_t f, std::int32_t cell, double step, double unit,
                Cut& cut);
  void cut_trees(const Question& question, std::span<const Ensemble::Member> members, Cut& cut);
  void name_cells(const Ball& ball, double unit, Cut& cut);
  void quantise(Cut& cut);
  void tabulate(const Tree& tree, Cut& cut);
  void add_leaves(std::int32_t at, Cut& cut, Table& table);
  double cost_of_path(const Cut& cut, const Table& table) const;
  void add_alone(const Table& table, Cut& cut);
  void add_alone_sets(const Table& table, Cut& cut);
  void index_roots(Cut& cut) const;

  const Ensemble& ensemble_;
  const Ball* ball_ = nullptr;
  std::vector<Cells> cells_;  // of the ball, narrowed while walking down
  cells::Within within_;      // the ball
  std::vector<Word> now_;     // per feature with places: those of the ball, narrowed likewise
  std::vector<std::size_t> now_start_;
  std::vector<Word> memory_;   // what to go back to
  cells::SetPool place_sets_;  // of places that nodes of the cut send left
  struct Used {
    std::int32_t feature;
    std::int32_t places;  // a set of them
    std::int32_t set;     // of cells
  };
  std::vector<Used> sets_used_;
  std::vector<std::uint8_t> used_;        // per edge of the model
  std::vector<std::int32_t> local_;       // feature of the model -> of the cut
  std::vector<std::int32_t> edge_local_;  // edge of the model -> rank in the cut
  std::vector<double> score_;             // of the cut's nodes
  Range plus_;
  Range minus_;
  std::int32_t n_leaves_;
  double budget_;
  std::vector<Tree> trees_;

  std::vector<Table> tables_;
  std::vector<std::int32_t> scope_;
  std::vector<std::int32_t> leaf_node_;
  std::vector<Cells> box_;
  std::vector<Cells> path_;             // cells per scope feature while walking down
  std::vector<std::int32_t> position_;  // feature of the cut -> position in the scope
  FactorWriter writer_;
};

}  // namespace hardwood::verify
