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

/// An end of the balls of some rows.
struct End {
  float at;
  std::uint64_t count;
};

/// All places between an upper and a lower end.
std::vector<Candidate> between_ends(std::span<const Value> values, const Reach& reach) {
  std::vector<End> upper, lower;
  upper.reserve(values.size());
  lower.reserve(values.size());
  for (const Value& value : values) {
    const BallEnds<float> ends(reach, value.x);
    upper.push_back({ends.highest, value.count});
    lower.push_back({ends.lowest, value.count});
  }
  if (!reach.ranks.empty()) {  // else they are sorted like the values
    std::ranges::sort(upper, {}, &End::at);
    std::ranges::sort(lower, {}, &End::at);
  }
  const bool moves = reach.down > 0 || reach.up > 0;
  const double step = std::max(std::min(reach.down, 0x1p120), std::min(reach.up, 0x1p120));
  std::vector<Candidate> found;
  std::size_t n_possible = 0;  // lower ends below the threshold
  std::uint64_t rows_sure = 0, rows_possible = 0;
  for (std::size_t i = 0; i < upper.size(); ++i) {
    rows_sure += upper[i].count;
    const float below = upper[i].at;
    if (i + 1 < upper.size() && upper[i + 1].at == below) continue;
    while (n_possible < lower.size() && lower[n_possible].at <= below) {
      rows_possible += lower[n_possible++].count;
    }
    if (n_possible == lower.size()) break;  // no lower end above
    const float above = lower[n_possible].at;
    // The next end of either kind must be this lower one.
    if (i + 1 < upper.size() && upper[i + 1].at < above) continue;
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
