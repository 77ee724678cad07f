#include "hardwood/grow/class_tree.hpp"

#include <numeric>
#include <vector>

#include "hardwood/grow/class_split.hpp"
#include "hardwood/grow/column_table.hpp"

namespace hardwood::grow {

GrownTree grow_class_tree(Matrix<const double> x, const ClassSample& sample,
                          std::span<const Reach> reach, const ClassTreeRules& rules,
                          const std::function<void()>& poll) {
  const GridWeights weights(sample.weight);
  ClassSum total{std::vector<double>(static_cast<std::size_t>(sample.n_classes))};
  for (std::size_t i = 0; i < x.n_rows; ++i) {
    total.weights[static_cast<std::size_t>(sample.label[i])] += weights.of(i);
  }
  Columns<ClassEntry> columns(
      x, rules.n_threads, [&](std::size_t, double value, std::uint32_t row) {
        return ClassEntry{value, row, static_cast<std::uint32_t>(sample.label[row])};
      });
  std::vector<Feature> features(x.n_cols);
  std::iota(features.begin(), features.end(), 0);
  const ClassTree criterion(rules, total, weights.step);
  ColumnTable<ClassSearch> table(columns, features, sample.monotonic, criterion, total, x.n_rows,
                                 ClassSearch(criterion, weights, reach));
  return Grower(table, poll).grow();
}

}  // namespace hardwood::grow
