#include "hardwood/bins/candidates.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

#include "hardwood/ambiguity.hpp"
#include "hardwood/box.hpp"

namespace hardwood::bins {
namespace {

/// A threshold and the rows of the sample around it.
struct Candidate {
  float threshold;
  std::uint64_t n_sure_left;
  std::uint64_t n_ambiguous;
};

/// All places between an upper and a lower end; both kinds of ends are sorted like the values.
std::vector<Candidate> between_ends(std::span<const Value> values, const Reach& reach) {
  std::vector<BallEnds<float>> ends;
  for (const Value& value : values) ends.emplace_back(reach, value.x);
  const bool moves = reach.down > 0 || reach.up > 0;
  const double step = std::max(std::min(reach.down, 0x1p120), std::min(reach.up, 0x1p120));
  std::vector<Candidate> found;
  std::size_t n_possible = 0;  // values with a lower end below the threshold
  std::uint64_t rows_sure = 0, rows_possible = 0;
  for (std::size_t upper = 0; upper < values.size(); ++upper) {
    rows_sure += values[upper].count;
    const float below = ends[upper].highest;
    if (upper + 1 < values.size() && ends[upper + 1].highest == below) continue;
    while (n_possible < values.size() && ends[n_possible].lowest <= below) {
      rows_possible += values[n_possible++].count;
    }
    if (n_possible == values.size()) break;  // no lower end above
    const float above = ends[n_possible].lowest;
    // The next end of either kind must be this lower one.
    if (upper + 1 < values.size() && ends[upper + 1].highest < above) continue;
    const double size = std::max({std::abs(double{below}), std::abs(double{above}), step});
    if (moves && double{above} - double{below} <= size * 0x1p-21) continue;
    found.push_back({between(below, above), rows_sure, rows_possible - rows_sure});
  }
  return found;
}

}  // namespace

std::vector<float> choose_candidates(std::span<const Value> values, const Reach& reach,
                                     std::size_t max_candidates) {
  if (values.size() < 2 || max_candidates == 0) return {};
  const std::vector<Candidate> found = between_ends(values, reach);
  std::vector<float> chosen;
  if (found.size() <= max_candidates) {
    for (const Candidate& candidate : found) chosen.push_back(candidate.threshold);
    return chosen;
  }
  // A share without a place of its own leaves its candidate to the rows above.
  const auto rank = [](const Candidate& candidate) {
    return static_cast<double>(candidate.n_sure_left) +
           static_cast<double>(candidate.n_ambiguous) / 2;
  };
  std::size_t i = 0;
  double begin = rank(found.front());
  while (i < found.size() && chosen.size() < max_candidates) {
    const double n_left = static_cast<double>(max_candidates - chosen.size());
    const double end = begin + (rank(found.back()) - begin) / n_left;
    const Candidate* best = &found[i];
    for (++i; i < found.size() && (rank(found[i]) < end || n_left == 1); ++i) {
      if (found[i].n_ambiguous < best->n_ambiguous) best = &found[i];
    }
    chosen.push_back(best->threshold);
    if (i < found.size()) begin = std::max(end, rank(found[i]));
  }
  return chosen;
}

}  // namespace hardwood::bins
