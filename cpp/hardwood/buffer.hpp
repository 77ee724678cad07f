#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <type_traits>
#include <utility>

#ifdef __linux__
#include <sys/mman.h>
#endif

namespace hardwood {

/// Uninitialised memory for plain values. On Linux all but small buffers come straight from the
/// system and go back there: what `new` gets back it may keep, with holes that fit nobody. Large
/// ones start on a huge page and ask for more of them: rows are visited in random order, and a
/// fifth of that time would go to page look-ups.
template <class T>
class Buffer {
  static_assert(std::is_trivially_copyable_v<T>);

 public:
  Buffer() = default;
  explicit Buffer(std::size_t size) : size_(size) {
    const std::size_t n_bytes = size * sizeof(T);
#ifdef __linux__
    if (n_bytes >= kMapped) {
      data_ = std::unique_ptr<T, Free>(static_cast<T*>(mapped(n_bytes)), Free{n_bytes});
      return;
    }
#endif
    data_ = std::unique_ptr<T, Free>(static_cast<T*>(::operator new(n_bytes, kAlignment)), Free{});
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
  static constexpr std::size_t kMapped = std::size_t{1} << 17, kHugePage = std::size_t{1} << 21;
  static constexpr std::align_val_t kAlignment{64};

  struct Free {
    std::size_t n_mapped = 0;  // 0: of `new`
    void operator()(T* data) const {
#ifdef __linux__
      if (n_mapped) {
        munmap(data, n_mapped);
        return;
      }
#endif
      ::operator delete(data, kAlignment);
    }
  };

#ifdef __linux__
  static char* anonymous(std::size_t n_bytes) {
    void* const begin =
        mmap(nullptr, n_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (begin == MAP_FAILED) throw std::bad_alloc();
    return static_cast<char*>(begin);
  }

  static void* mapped(std::size_t n_bytes) {
    if (n_bytes < kHugePage) return anonymous(n_bytes);
    const std::size_t n = n_bytes + kHugePage;
    char* const begin = anonymous(n);
    const std::size_t skipped = -reinterpret_cast<std::uintptr_t>(begin) % kHugePage;
    if (skipped) munmap(begin, skipped);
    constexpr std::size_t kPage = 4096;
    const std::size_t used = (n_bytes + kPage - 1) / kPage * kPage;
    munmap(begin + skipped + used, n - skipped - used);
    // A request, not a need: the answer does not matter.
    madvise(begin + skipped, n_bytes, MADV_HUGEPAGE);
    return begin + skipped;
  }
#endif

  std::unique_ptr<T, Free> data_;
  std::size_t size_ = 0;
};

}  // namespace hardwood
