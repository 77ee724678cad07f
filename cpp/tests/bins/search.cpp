#include "hardwood/bins/search.hpp"

#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

#include "check.hpp"

namespace hardwood::tests {
namespace {

const Case every_path_counts_edges{
    "bins: a code is the number of edges not above the value, on every processor", [] {
      std::mt19937 random(1);
      std::normal_distribution<float> normal;
      for (const std::size_t n_edges : {0, 1, 2, 7, 63, 200, 255}) {
        std::vector<float> edges(n_edges);
        for (float& edge : edges) edge = normal(random);
        std::ranges::sort(edges);
        std::vector<float> x{-1e30f, 0.0f, -0.0f, 1e30f};
        for (const float edge : edges) {  // on the edges and one float to each side
          x.insert(x.end(), {edge, std::nextafter(edge, -1e38f), std::nextafter(edge, 1e38f)});
        }
        for (int i = 0; i < 37; ++i) x.push_back(normal(random));
        const bins::SortedEdges sorted(edges);
        std::vector<std::uint8_t> fast(x.size()), portable(x.size());
        sorted.encode(x, fast.data());
        sorted.encode_portable(x, portable.data());
        bool right = true;
        for (std::size_t i = 0; i < x.size(); ++i) {
          const auto n_below =
              std::ranges::count_if(edges, [&](float edge) { return !(x[i] < edge); });
          right = right && fast[i] == n_below && portable[i] == n_below;
        }
        check(right, "codes with " + std::to_string(n_edges) + " edges");
      }
    }};

}  // namespace
}  // namespace hardwood::tests
