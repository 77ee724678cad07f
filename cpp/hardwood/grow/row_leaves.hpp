#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "hardwood/grow/fixed_point.hpp"
#include "hardwood/grow/grown_tree.hpp"
#include "hardwood/grow/row_set.hpp"
#include "hardwood/parallel.hpp"
#include "hardwood/part.hpp"

namespace hardwood::grow {

/// Where the leaf of every row of the table goes.
struct RowLeaves {
  NodeId* leaf;  ///< that of row i is leaf[i * stride]
  std::size_t stride;
  RowList outside;  ///< rows that did not train
  Part part = {};

  /// Find the leaves of a tree that is written down, and count the rows of children that never got
  /// rows of their own. Where no row said it, missing values go with the larger child.
  template <class Row, class Node>
  void find(const bins::Binned& binned, const RowSet<Row>& row_set, const std::vector<Node>& nodes,
            const std::vector<NodeId>& id_of, int n_threads, GrownTree& tree) const {
    // Rows of leaves lie together; those of children that never got rows of their own are still
    // told apart by their parent's split.
    struct Task {
      std::size_t node, begin, end, n_left = 0;
    };
    std::vector<Task> tasks;
    for (const Node& node : nodes) {
      if (!node.has_rows || (node.left && nodes[node.left].has_rows)) continue;
      for (std::size_t begin = node.begin; begin < node.end; begin += kBlock) {
        tasks.push_back({node.number, begin, std::min(begin + kBlock, node.end)});
      }
    }
    parallel_for(tasks.size(), n_threads, [&](std::size_t t, int) {
      Task& task = tasks[t];
      const Node& node = nodes[task.node];
      const auto rows = row_set.range(task.begin, task.end);
      constexpr std::size_t kAhead = RowSet<Row>::kAhead;
      const auto ask = [&](std::size_t i) { __builtin_prefetch(leaf + rows[i].row * stride, 1); };
      if (!node.left) {
        for (std::size_t i = 0; i < rows.size(); ++i) {
          if (i + kAhead < rows.size()) ask(i + kAhead);
          leaf[rows[i].row * stride] = id_of[task.node];
        }
        return;
      }
      const NodeId left = id_of[node.left], right = id_of[node.right];
      with_sides(binned, node.split, [&](const auto& split) {
        for (std::size_t i = 0; i < rows.size(); ++i) {
          if (i + kAhead < rows.size()) {
            __builtin_prefetch(split.code(rows[i + kAhead].row));
            ask(i + kAhead);
          }
          const bool goes_left = split.goes_left(rows[i].row);
          leaf[rows[i].row * stride] = goes_left ? left : right;
          task.n_left += goes_left;
        }
      });
    });
    std::int64_t* n_samples = tree.n_samples.data();
    std::vector<std::int64_t> n_left(nodes.size());
    for (const Task& task : tasks) n_left[task.node] += static_cast<std::int64_t>(task.n_left);
    part.sum(n_left);
    for (const Node& node : nodes) {
      if (!node.left || nodes[node.left].has_rows) continue;
      n_samples[id_of[node.left]] = n_left[node.number];
      n_samples[id_of[node.right]] = static_cast<std::int64_t>(node.n_rows()) - n_left[node.number];
    }
    for (const Node& node : nodes) {
      if (!node.left || node.split.saw_missing) continue;
      tree.missing_left[static_cast<std::size_t>(id_of[node.number])] =
          n_samples[id_of[node.left]] >= n_samples[id_of[node.right]];
    }
    parallel_blocks(outside.size(), kBlock, n_threads,
                    [&](std::size_t begin, std::size_t end, int) {
                      for (std::size_t i = begin; i < end; ++i) {
                        const Node* node = nodes.data();
                        while (node->left) {
                          const bool left = goes_left(binned, node->split, outside[i]);
                          node = &nodes[left ? node->left : node->right];
                        }
                        leaf[outside[i] * stride] = id_of[node->number];
                      }
                    });
  }

 private:
  static constexpr std::size_t kBlock = 1 << 14;  // rows handled together
};

}  // namespace hardwood::grow
