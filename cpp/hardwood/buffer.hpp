#pragma once

#include <cstddef>
#include <memory>
#include <new>
#include <type_traits>
#include <utility>

#ifdef __linux__
#include <sys/mman.h>
#endif

namespace hardwood {

/// Uninitialised memory for plain values. Large buffers start on a huge page and ask for more of
/// them: rows are visited in random order, and a fifth of that time would go to page look-ups.
template <class T>
class Buffer {
  static_assert(std::is_trivially_copyable_v<T>);

 public:
  Buffer() = default;
  explicit Buffer(std::size_t size) : size_(size) {
    constexpr std::size_t kHugePage = std::size_t{1} << 21;
    const std::size_t n_bytes = size * sizeof(T);
    const auto alignment = std::align_val_t{n_bytes < kHugePage ? 64 : kHugePage};
    data_ = std::unique_ptr<T, Free>(static_cast<T*>(::operator new(n_bytes, alignment)),
                                     Free{alignment});
#ifdef __linux__
    // A request, not a need: the answer does not matter.
    if (n_bytes >= kHugePage) madvise(data_.get(), n_bytes, MADV_HUGEPAGE);
#endif
  }

  Buffer(Buffer&& other) noexcept
      : data_(std::move(other.data_)), size_(std::exchange(other.size_, 0)) {}
  Buffer& operator=(Buffer&& other) noexcept {
    data_ = std::move(other.data_);
    size_ = std::exchange(other.size_, 0);
    return *this;
  }

  T* data() { return data_.get(); }
  const T* data() const { return data_.get(); }
  std::size_t size() const { return size_; }
  T& operator[](std::size_t i) { return data_.get()[i]; }
  const T& operator[](std::size_t i) const { return data_.get()[i]; }

 private:
  struct Free {
    std::align_val_t alignment{};
    void operator()(T* data) const { ::operator delete(data, alignment); }
  };
  std::unique_ptr<T, Free> data_;
  std::size_t size_ = 0;
};

}  // namespace hardwood
