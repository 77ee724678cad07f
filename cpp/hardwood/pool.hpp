#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
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
/// again for large pieces costs more than what is done with them.
class Pool {
 public:
  template <class T>
  Pooled<T> take(std::size_t n) {
    const std::size_t n_bytes = rounded(n * sizeof(T));
    const std::lock_guard guard(lock_);
    const auto found = free_.lower_bound(n_bytes);
    if (found == free_.end() || found->first > 2 * n_bytes) {
      return {Buffer<std::byte>(n_bytes), n};
    }
    Pooled<T> taken(std::move(found->second), n);
    free_.erase(found);
    return taken;
  }

  template <class T>
  void give_back(Pooled<T> taken) {
    const std::lock_guard guard(lock_);
    if (const std::size_t n = taken.bytes_.size()) free_.emplace(n, std::move(taken.bytes_));
  }

 private:
  /// Up to 1, 1.5, 2, 3, 4, 6 ... kB, so that about as many fit next time.
  static std::size_t rounded(std::size_t n) {
    const std::size_t power = std::bit_ceil(std::max<std::size_t>(n, 1024));
    return n <= power / 4 * 3 ? power / 4 * 3 : power;
  }

  std::mutex lock_;
  std::multimap<std::size_t, Buffer<std::byte>> free_;
};

}  // namespace hardwood
