#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <span>
#include <stdexcept>
#include <utility>
#include <vector>

#include "hardwood/bins/end_codes.hpp"
#include "hardwood/ensemble/margin_loss.hpp"
#include "hardwood/grow/certified_tree.hpp"
#include "hardwood/grow/grown_tree.hpp"
#include "hardwood/model/trees.hpp"
#include "hardwood/part.hpp"
#include "hardwood/pool.hpp"
#include "hardwood/types.hpp"

namespace hardwood::ensemble {

/// What one round of certified boosting is made from: a tree for every column of the margins.
struct CertifiedRound {
  std::span<const float> y;       ///< one a row of the table; many outputs: the row's class
  std::span<const float> weight;  ///< one a row of the codes, >= 0, or empty: 1
  /// The least and the largest margin that the adversary can give a row, by the bound that adds up
  /// what it can do to each tree: rows of the codes x n_outputs. The round is added to them.
  Matrix<float> low, high;
  std::span<const std::uint8_t> sampled;   ///< one a row of the table, or empty: every row trains
  Matrix<const Feature> features;          ///< of each output, increasing; or empty: every one
  std::span<const std::int8_t> monotonic;  ///< one a feature, or empty: no constraint
  grow::NewtonRules rules;
  MarginLoss loss = MarginLoss::kLogistic;
  float loss_parameter = 0;
  float learning_rate = 1;
  int n_refits = 3;  ///< Newton steps on the leaves of a grown tree
  std::uint64_t seed = 0;
};

/// Boosting on certified margins.
///
/// Every row knows the range of margins that the adversary can give it: for each tree the least
/// and the largest of the leaves it can be pushed to, added up. Derivatives are taken at the worse
/// end, trees are grown on rows that go wherever they can be sent (grow/certified_tree.hpp), and
/// the leaves of a grown tree are refitted with each row in its worst one. With many outputs each
/// column is a class of its own against the rest.
template <class Code>
class CertifiedBoosting {
 public:
  /// `at_rest`: every row comes a second time, unmoved (see EndCodes).
  template <class Table>
  CertifiedBoosting(const Table& table, std::span<const Reach> reach, std::size_t max_bins,
                    bool at_rest, int n_threads)
      : n_rows_(table.n_rows()), codes_(table, reach, max_bins, at_rest, n_threads) {}
  /// Rows that are in codes already: a part of a table whose other parts others have. All of them
  /// make the same rounds at the same time; the trees are those of the whole table. `number`: of
  /// each row its position in the whole table of `n_all` rows, modulo 2^32; empty: that in the
  /// part.
  CertifiedBoosting(bins::EndCandidates candidates, std::span<const bins::EndRows<Code>> pieces,
                    bool at_rest, std::vector<std::uint32_t> number, std::size_t n_all,
                    std::shared_ptr<Communicator> others, int n_threads)
      : codes_(std::move(candidates), pieces, at_rest, n_threads),
        others_(std::move(others)),
        number_(std::move(number)) {
    n_rows_ = codes_.rest();
    if (!number_.empty() && number_.size() != n_rows_) {
      throw std::invalid_argument("number needs one entry a row.");
    }
    for (std::size_t i = 0; !number_.empty() && i < codes_.n_rows() - n_rows_; ++i) {
      number_.push_back(number_[i] + static_cast<std::uint32_t>(n_all));
    }
  }

  const bins::EndCodes<Code>& codes() const { return codes_; }
  Part part() const { return {others_.get(), number_}; }

  /// One tree an output, leaf values shrunk.
  std::vector<grow::GrownTree> step(const CertifiedRound& round);

  /// Add trees that were grown on these candidates to the ends of all rows.
  void add(const model::Trees& trees, Matrix<float> low, Matrix<float> high, int n_threads) const;

 private:
  std::size_t n_rows_;  // of the table
  bins::EndCodes<Code> codes_;
  std::shared_ptr<Communicator> others_;
  std::vector<std::uint32_t> number_;
  std::mutex busy_;         // one round at a time
  std::deque<Pool> pools_;  // a thread has one
};

}  // namespace hardwood::ensemble
