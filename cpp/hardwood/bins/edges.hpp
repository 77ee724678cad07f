#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "hardwood/threat.hpp"

namespace hardwood::bins {

/// A value of a feature, in the precision of the model, and how many rows have it: a row of weight
/// 2 is two rows.
struct Value {
  float x;
  std::uint64_t count;
};

/// Put a sample in increasing order and count equal values.
/// `scratch` is the memory of the sort; both may be reused.
std::vector<Value> count_values(std::vector<float>& sample, std::vector<float>& scratch);
std::vector<Value> count_values(std::vector<Value>& sample, std::vector<Value>& scratch);

/// The edges of one feature, increasing: bin k holds the x with edges[k-1] <= x < edges[k]. Every
/// edge is a threshold that training may choose.
///
/// `values` are those of a sample, increasing. At most `max_bins` bins. What holds:
///
/// - At most `max_bins` values: an edge between every two neighbours, each placed where the
///   adversary can move the fewest rows across it.
/// - If there is room for it, an edge in every gap between values and ends of balls too: then every
///   threshold there is, up to ones that no row, moved or not, tells apart, is among the edges.
/// - More values: edges at equal shares of the rows, or of their weight. If the adversary can move
/// the feature, a third
///   of them, and the others where the ambiguity sets of that third begin and end: the sets of
///   these thresholds are then unions of whole bins, and nothing is lost to rounding them up.
std::vector<float> choose_edges(std::span<const Value> values, const Reach& reach,
                                std::size_t max_bins);

}  // namespace hardwood::bins
