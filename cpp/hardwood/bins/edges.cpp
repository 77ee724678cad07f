#include "hardwood/bins/edges.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <limits>
#include <utility>

#include "hardwood/ambiguity.hpp"
#include "hardwood/box.hpp"

namespace hardwood::bins {
namespace {

/// Floats and the integers in the same order.
std::uint32_t key_of(float x) {
  const auto bits = std::bit_cast<std::uint32_t>(x + 0.0f);  // -0 is 0
  return bits >> 31 ? ~bits : bits | 0x80000000u;
}
float float_of(std::uint32_t key) {
  return std::bit_cast<float>(key >> 31 ? key & 0x7fffffffu : ~key);
}

/// The smallest float for which `holds`, which is false below some point and true from there on.
template <class Holds>
float first_float(Holds&& holds) {
  std::uint32_t low = key_of(std::numeric_limits<float>::lowest());
  std::uint32_t high = key_of(std::numeric_limits<float>::max());
  while (low < high) {
    const std::uint32_t middle = low + (high - low) / 2;
    if (holds(float_of(middle))) {
      high = middle;
    } else {
      low = middle + 1;
    }
  }
  return float_of(high);
}

void sort_unique(std::vector<float>& values) {
  std::ranges::sort(values);
  values.erase(std::ranges::unique(values).begin(), values.end());
}

/// Sorted points where something changes when a threshold passes them: values and ends of balls.
std::vector<float> events_of(std::span<const Value> values, const Reach& reach) {
  std::vector<float> events;
  for (const Value& value : values) {
    for (const double end :
         {static_cast<double>(value.x), reach.lowest(value.x), reach.highest(value.x)}) {
      const auto event = static_cast<float>(end);
      if (values.front().x <= event && event <= values.back().x) events.push_back(event);
    }
  }
  sort_unique(events);
  return events;
}

/// One edge in every gap between neighbouring events.
std::vector<float> edges_between(std::span<const float> events) {
  std::vector<float> edges;
  for (std::size_t i = 1; i < events.size(); ++i)
    edges.push_back(between(events[i - 1], events[i]));
  return edges;
}

/// How many rows of the sample are ambiguous at a threshold that only rises from call to call.
class Ambiguous {
 public:
  Ambiguous(std::span<const Value> values, const Reach& reach) : values_(values), reach_(reach) {}

  std::uint64_t at(float threshold) {
    while (n_possible_ < values_.size() && !sure_right(reach_, values_[n_possible_].x, threshold)) {
      count_ += values_[n_possible_++].count;
    }
    while (n_sure_ < values_.size() && sure_left(reach_, values_[n_sure_].x, threshold)) {
      count_ -= values_[n_sure_++].count;
    }
    return count_;
  }

 private:
  std::span<const Value> values_;
  const Reach& reach_;
  std::size_t n_sure_ = 0, n_possible_ = 0;
  std::uint64_t count_ = 0;
};

/// One edge in every gap between neighbouring values, at the lowest place where the fewest rows are
/// ambiguous.
std::vector<float> least_ambiguous_edges(std::span<const Value> values,
                                         std::span<const float> events, const Reach& reach) {
  Ambiguous ambiguous(values, reach);
  std::vector<float> edges;
  std::size_t event = 1;
  for (std::size_t i = 1; i < values.size(); ++i) {
    float best = 0;
    auto least = std::numeric_limits<std::uint64_t>::max();
    for (; event < events.size() && events[event] <= values[i].x; ++event) {
      const float edge = between(events[event - 1], events[event]);
      const std::uint64_t count = ambiguous.at(edge);
      if (count < least) least = count, best = edge;
    }
    edges.push_back(best);
  }
  return edges;
}

/// Edges that cut the rows into `n_bins` shares as equal as whole values allow.
std::vector<float> quantile_edges(std::span<const Value> values, std::size_t n_bins) {
  std::uint64_t rest = 0;
  for (const Value& value : values) rest += value.count;
  std::vector<float> edges;
  std::uint64_t inside = 0;
  for (std::size_t i = 0; i + 1 < values.size() && edges.size() + 1 < n_bins; ++i) {
    inside += values[i].count;
    const double share = static_cast<double>(rest) / static_cast<double>(n_bins - edges.size());
    // A value with a share of its own gets its own bin.
    const bool large_next = static_cast<double>(values[i + 1].count) >= share &&
                            static_cast<double>(inside) >= share / 2;
    if (static_cast<double>(inside) < share && !large_next) continue;
    edges.push_back(between(values[i].x, values[i + 1].x));
    rest -= inside;
    inside = 0;
  }
  return edges;
}

/// Quantile thresholds together with the borders of their ambiguity sets.
std::vector<float> framed_edges(std::span<const Value> values, const Reach& reach,
                                std::size_t max_bins) {
  // Thresholds without a sure row on each side gain nothing: the quantiles are those of the rest.
  const float low = values.front().x, high = values.back().x;
  std::vector<Value> inner;
  for (const Value& value : values) {
    if (sure_left(reach, low, value.x) && sure_right(reach, high, value.x)) inner.push_back(value);
  }
  std::vector<float> edges;
  for (const float threshold : quantile_edges(inner, (max_bins - 1) / 3 + 1)) {
    edges.push_back(threshold);
    edges.push_back(first_float([&](float x) { return !sure_left(reach, x, threshold); }));
    edges.push_back(first_float([&](float x) { return sure_right(reach, x, threshold); }));
  }
  sort_unique(edges);
  return edges;
}

float x_of(float x) { return x; }
float x_of(const Value& value) { return value.x; }
std::uint64_t count_of(float) { return 1; }
std::uint64_t count_of(const Value& value) { return value.count; }

/// A row of the sample is its value, or its value and its weight.
template <class Row>
std::vector<Value> count_sorted(std::vector<Row>& sample, std::vector<Row>& scratch) {
  // Radix sort, eleven bits at a time: six times faster than comparing.
  constexpr std::size_t kBits = 11, kSize = std::size_t{1} << kBits;
  scratch.resize(sample.size());
  std::array<std::array<std::uint32_t, kSize>, 3> starts{};
  const auto digit = [](const Row& row, std::size_t pass) {
    return (key_of(x_of(row)) >> (kBits * pass)) & (kSize - 1);
  };
  for (const Row& row : sample) {
    for (std::size_t pass = 0; pass < 3; ++pass) ++starts[pass][digit(row, pass)];
  }
  for (std::size_t pass = 0; pass < 3; ++pass) {
    std::uint32_t sum = 0;
    for (std::uint32_t& start : starts[pass]) start = std::exchange(sum, sum + start);
    for (const Row& row : sample) scratch[starts[pass][digit(row, pass)]++] = row;
    sample.swap(scratch);
  }
  std::vector<Value> values;
  for (const Row& row : sample) {
    if (values.empty() || values.back().x != x_of(row)) values.push_back({x_of(row), 0});
    values.back().count += count_of(row);
  }
  return values;
}

}  // namespace

std::vector<Value> count_values(std::vector<float>& sample, std::vector<float>& scratch) {
  return count_sorted(sample, scratch);
}

std::vector<Value> count_values(std::vector<Value>& sample, std::vector<Value>& scratch) {
  return count_sorted(sample, scratch);
}

std::vector<float> choose_edges(std::span<const Value> values, const Reach& reach,
                                std::size_t max_bins) {
  if (values.size() < 2 || max_bins < 2) return {};
  const bool moves = reach.down > 0 || reach.up > 0;
  if (values.size() > max_bins) {
    return moves ? framed_edges(values, reach, max_bins) : quantile_edges(values, max_bins);
  }
  const std::vector<float> events = events_of(values, reach);
  if (events.size() <= max_bins) return edges_between(events);
  return least_ambiguous_edges(values, events, reach);
}

}  // namespace hardwood::bins
