#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <iterator>
#include <map>
#include <mutex>
#include <utility>

#include "hardwood/buffer.hpp"

namespace hardwood {

/// Uninitialised memory on loan from a `Pool`.
template <class T>
class Pooled {
 public:
  Pooled() = default;
  T* data() { return reinterpret_cast<T*>(bytes_.data()); }
  const T* data() const { return reinterpret_cast<const T*>(bytes_.data()); }
  std::size_t size() const { return size_; }
  T& operator[](std::size_t i) { return data()[i]; }
  const T& operator[](std::size_t i) const { return data()[i]; }

 private:
  friend class Pool;
  Pooled(Buffer<std::byte> bytes, std::size_t size) : bytes_(std::move(bytes)), size_(size) {}

  Buffer<std::byte> bytes_;
  std::size_t size_ = 0;
};

/// Memory that is not in use. What is given back serves others, of whatever type: to ask the system
/// again for large pieces costs more than what is done with them. Little more is held than was ever
/// in use: where that is reached and no piece fits, others go in exchange for a new one.
class Pool {
 public:
  template <class T>
  Pooled<T> take(std::size_t n) {
    const std::size_t n_bytes = rounded(n * sizeof(T));
    const std::lock_guard guard(lock_);
    const auto found = free_.lower_bound(n_bytes);
    if (found == free_.end() || found->first > 2 * n_bytes) {
      in_use_ += n_bytes;
      most_in_use_ = std::max(most_in_use_, in_use_);
      exchange(n_bytes);
      return {Buffer<std::byte>(n_bytes), n};
    }
    in_use_ += found->first;
    most_in_use_ = std::max(most_in_use_, in_use_);
    not_in_use_ -= found->first;
    Pooled<T> taken(std::move(found->second), n);
    free_.erase(found);
    return taken;
  }

  template <class T>
  void give_back(Pooled<T> taken) {
    const std::lock_guard guard(lock_);
    const std::size_t n = taken.bytes_.size();
    if (n == 0) return;
    in_use_ -= n;
    not_in_use_ += n;
    free_.emplace(n, std::move(taken.bytes_));
  }

  /// How many pieces nobody uses.
  std::size_t n_free() const { return free_.size(); }

 private:
  /// Up to 1, 1.5, 2, 3, 4, 6 ... kB, so that about as many fit next time.
  static std::size_t rounded(std::size_t n) {
    const std::size_t power = std::bit_ceil(std::max<std::size_t>(n, 1024));
    return n <= power / 4 * 3 ? power / 4 * 3 : power;
  }

  /// Let pieces go until at most an eighth more is held than was ever in use: those next smaller
  /// than the new one, then the largest ones. With less room than that, pieces come and go all the
  /// time.
  void exchange(std::size_t n_bytes) {
    while (!free_.empty() && in_use_ + not_in_use_ > most_in_use_ / 8 * 9) {
      const auto after = free_.lower_bound(n_bytes);
      const auto piece = std::prev(after == free_.begin() ? free_.end() : after);
      not_in_use_ -= piece->first;
      free_.erase(piece);
    }
  }

  std::mutex lock_;
  std::multimap<std::size_t, Buffer<std::byte>> free_;
  std::size_t in_use_ = 0, most_in_use_ = 0, not_in_use_ = 0;  // bytes
};

}  // namespace hardwood
