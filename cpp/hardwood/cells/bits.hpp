#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

namespace hardwood::cells {

/// Sets of small whole numbers as words of 64 bits.
using Word = std::uint64_t;

inline std::size_t words_for(std::size_t n) { return (n + 63) / 64; }
inline bool has_bit(const Word* words, std::int32_t at) {
  return (words[static_cast<std::size_t>(at) / 64] >> (static_cast<std::size_t>(at) % 64)) & 1;
}
inline void set_bit(Word* words, std::int32_t at) {
  words[static_cast<std::size_t>(at) / 64] |= Word{1} << (static_cast<std::size_t>(at) % 64);
}
/// The first n numbers.
inline void set_first(std::span<Word> words, std::size_t n) {
  for (std::size_t w = 0; w < words.size(); ++w) {
    const std::size_t left = n > 64 * w ? n - 64 * w : 0;
    words[w] = left >= 64 ? ~Word{0} : (Word{1} << left) - 1;
  }
}
inline bool any_bit(std::span<const Word> words) {
  for (const Word word : words) {
    if (word != 0) return true;
  }
  return false;
}
/// The least number of a set that is not empty.
inline std::int32_t first_bit(std::span<const Word> words) {
  std::size_t w = 0;
  while (words[w] == 0) ++w;
  return static_cast<std::int32_t>(64 * w) + std::countr_zero(words[w]);
}
template <class Visit>
void for_each_bit(std::span<const Word> words, Visit&& visit) {
  for (std::size_t w = 0; w < words.size(); ++w) {
    for (Word rest = words[w]; rest != 0; rest &= rest - 1) {
      visit(64 * w + static_cast<std::size_t>(std::countr_zero(rest)));
    }
  }
}

/// Sets that are kept once each, known by where their words begin.
class SetPool {
 public:
  void clear() {
    words_.clear();
    known_.clear();
  }
  const Word* at(std::int32_t set) const { return words_.data() + set; }
  /// `words` must not lie in the pool itself.
  std::int32_t add(std::span<const Word> words) {
    std::uint64_t hash = words.size();
    for (const Word word : words) hash = (hash ^ word) * 0x9e3779b97f4a7c15 ^ (hash >> 29);
    const auto [first, last] = known_.equal_range(hash);
    for (auto known = first; known != last; ++known) {
      const Word* mine = at(known->second);
      bool same = static_cast<std::size_t>(known->second) + words.size() <= words_.size();
      for (std::size_t w = 0; same && w < words.size(); ++w) same = mine[w] == words[w];
      if (same) return known->second;
    }
    const auto set = static_cast<std::int32_t>(words_.size());
    words_.insert(words_.end(), words.begin(), words.end());
    known_.emplace(hash, set);
    return set;
  }

  /// What is in one set of the pool and also in another or, where `but`, not.
  std::int32_t add_both(std::int32_t one, std::int32_t other, std::size_t n_words, bool but) {
    both_.resize(n_words);
    for (std::size_t w = 0; w < n_words; ++w) {
      both_[w] = at(one)[w] & (but ? ~at(other)[w] : at(other)[w]);
    }
    return add(both_);
  }

 private:
  std::vector<Word> both_;
  std::vector<Word> words_;
  std::unordered_multimap<std::uint64_t, std::int32_t> known_;
};

}  // namespace hardwood::cells
