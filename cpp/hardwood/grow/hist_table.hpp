#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "hardwood/bins/binned.hpp"
#include "hardwood/grow/class_tree.hpp"
#include "hardwood/grow/grown_tree.hpp"
#include "hardwood/grow/newton.hpp"
#include "hardwood/grow/window.hpp"
#include "hardwood/part.hpp"
#include "hardwood/threat.hpp"
#include "hardwood/types.hpp"

namespace hardwood::grow {

/// What one call grows: a tree for every column of the gradients.
struct HistRequest {
  Matrix<const float> gradient;            ///< n_rows x n_trees, finite
  Matrix<const float> hessian;             ///< the same shape, >= 0
  std::span<const float> weight;           ///< one a row, > 0, or empty: 1
  std::span<const std::uint8_t> sampled;   ///< one a row, or empty: every row trains
  std::span<const Feature> features;       ///< increasing, or empty: every feature
  std::span<const std::int8_t> monotonic;  ///< one a feature, or empty: no constraint
  NewtonRules rules;
  bool portable = false;  ///< keep to instructions that every processor has; same bytes
  /// Called now and then on the calling thread; it stops the work by throwing.
  std::function<void()> checkpoint = [] {};
};

/// A table made ready for robust trees from histograms: binned once, grown on many times, also by
/// several threads at once.
///
/// The trees are those of NewtonCriterion or a ClassCriterion with thresholds at the edges of the
/// bins (bins/edges.hpp) and ambiguity sets rounded up to whole bins (grow/window.hpp). Same bytes
/// for any number of threads and on every processor.
class HistTable {
 public:
  /// `weight`: of the rows, for the edges of the bins; empty: 1.
  template <class Table>
  HistTable(const Table& table, std::span<const Reach> reach, std::size_t max_bins, int n_threads,
            std::span<const double> weight = {}, const Kinds& kinds = {});
  /// Rows that are in codes already: a part of a table whose other parts others have. All of them
  /// grow the same trees at the same time, each on one thread at a time, those of the whole table.
  /// `number`: of each row its position in the whole table, modulo 2^32; empty: that in the part.
  /// `let_go`: as in bins::Binned.
  HistTable(
      bins::Cuts cuts, std::span<const bins::CodedRows> pieces, std::span<const Reach> reach,
      std::vector<std::uint32_t> number, std::shared_ptr<Communicator> others, int n_threads,
      const Kinds& kinds = {}, const std::function<void(std::size_t)>& let_go = [](auto) {});
  ~HistTable();

  std::size_t n_rows() const { return binned_.n_rows(); }
  std::size_t n_features() const { return binned_.n_features(); }
  const bins::Binned& binned() const { return binned_; }

  /// `leaf` (n_rows x n_trees) becomes the leaf of every row, also of rows not sampled. It may lie
  /// where the gradient does: by then that is not needed any more.
  std::vector<GrownTree> grow(const HistRequest& request, Matrix<std::int32_t> leaf);

  /// A classification tree; see `grow_class_tree`. `checkpoint` as in a request.
  GrownTree grow_classes(const ClassSample& sample, const ClassTreeRules& rules,
                         const std::function<void()>& checkpoint);

 private:
  struct Workspace;  // memory that trees reuse

  std::unique_ptr<Workspace> take_workspace();
  void give_back(std::unique_ptr<Workspace> workspace);

  Part part() const { return {others_.get(), number_}; }

  std::shared_ptr<Communicator> others_;
  std::vector<std::uint32_t> number_;
  bins::Binned binned_;
  std::vector<Window> windows_;
  std::int32_t only_ = -1;  // the class whose rows alone are moved, or -1
  std::mutex lock_;         // of the workspaces that are not in use
  std::vector<std::unique_ptr<Workspace>> workspaces_;
};

}  // namespace hardwood::grow
