#include "hardwood/ensemble/certified_ends.hpp"

#include <algorithm>
#include <limits>
#include <stdexcept>
#include <vector>

#include "hardwood/model/reached.hpp"
#include "hardwood/parallel.hpp"

namespace hardwood::ensemble {

template <class X>
void add_certified_ends(const model::Trees& trees, Matrix<const X> x, std::span<const Reach> reach,
                        Matrix<float> low, Matrix<float> high, int n_threads) {
  if (trees.has_categories() || trees.n_values != 1 || !trees.sum_float32) {
    throw std::invalid_argument(
        "certified margins are those of float32 trees with one value a leaf and no categories.");
  }
  if (x.n_cols != static_cast<std::size_t>(trees.n_features) || reach.size() != x.n_cols ||
      low.n_rows != x.n_rows || high.n_rows != x.n_rows || low.n_cols != trees.n_outputs() ||
      high.n_cols != trees.n_outputs()) {
    throw std::invalid_argument("rows, threat and margins must have the shapes of the model.");
  }
  constexpr std::size_t kBlock = 256;
  parallel_blocks(x.n_rows, kBlock, n_threads, [&](std::size_t begin, std::size_t end, int) {
    std::vector<std::size_t> open;
    for (std::size_t i = begin; i < end; ++i) {
      const std::span<const X> row = x.row(i);
      for (std::size_t k = 0; k < trees.n_trees(); ++k) {
        double least = std::numeric_limits<double>::infinity(), largest = -least;
        model::visit_reached(trees, k, row, reach, open, [&](std::size_t node) {
          least = std::min(least, trees.value[node]);
          largest = std::max(largest, trees.value[node]);
        });
        const auto output = static_cast<std::size_t>(trees.tree_output[k]);
        low(i, output) += static_cast<float>(least);
        high(i, output) += static_cast<float>(largest);
      }
    }
  });
}

template void add_certified_ends(const model::Trees&, Matrix<const float>, std::span<const Reach>,
                                 Matrix<float>, Matrix<float>, int);
template void add_certified_ends(const model::Trees&, Matrix<const double>, std::span<const Reach>,
                                 Matrix<float>, Matrix<float>, int);

}  // namespace hardwood::ensemble
