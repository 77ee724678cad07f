#pragma once

#include <cstdint>
#include <span>

#include "hardwood/grow/class_judge.hpp"
#include "hardwood/grow/class_nodes.hpp"
#include "hardwood/grow/grower.hpp"
#include "hardwood/grow/split.hpp"
#include "hardwood/threat.hpp"
#include "hardwood/types.hpp"

namespace hardwood::grow {

/// One value of one row of a class tree.
struct ClassEntry {
  double x;
  std::uint32_t row;
  std::uint32_t label;
};

using ClassSplit = SplitOf<ClassSum>;

/// Tries every candidate threshold of one column of a node.
class ClassSearch {
 public:
  using Entry = ClassEntry;
  using Split = ClassSplit;
  using Criterion = ClassTree;

  ClassSearch(const ClassTree& tree, const GridWeights& weights, std::span<const Reach> reach)
      : tree_(tree), weights_(weights), reach_(reach) {}

  ClassSearched prepare(const Node<ClassSplit>& node) const { return ClassSearched(node); }

  /// Keep in `best` what beats it. `monotonic` is +1 or -1 if the share of class 1 must not fall or
  /// rise along the feature, else 0.
  void search(std::span<const ClassEntry> column, Feature feature, int monotonic,
              const ClassSearched& node, ClassSplit& best) const;

 private:
  template <ClassCriterion C>
  void search_with(std::span<const ClassEntry> column, Feature feature, int monotonic,
                   const ClassSearched& node, typename C::Weights zero, ClassSplit& best) const;

  const ClassTree& tree_;
  const GridWeights& weights_;
  std::span<const Reach> reach_;
};

}  // namespace hardwood::grow
