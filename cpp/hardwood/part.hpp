#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <string>

namespace hardwood {

/// All who hold rows of one table. Everybody asks the same questions in the same order, each with
/// an array of the same length, and everybody gets the same answer.
class Communicator {
 public:
  virtual ~Communicator() = default;

  /// Every entry becomes the sum of everybody's.
  virtual void sum(std::span<std::int64_t> values) = 0;
  /// Every entry becomes the largest of everybody's.
  virtual void max(std::span<double> values) = 0;
};

/// Speaks through a function of the form of XGBoost's XGCommunicatorAllreduce. Its group belongs
/// to a thread, so ask on the thread that joined it.
class Collective final : public Communicator {
 public:
  using AllReduce = int (*)(void* values, std::size_t n, int type, int operation);
  using LastError = const char* (*)();

  Collective(AllReduce all_reduce, LastError last_error)
      : all_reduce_(all_reduce), last_error_(last_error) {}

  void sum(std::span<std::int64_t> values) override {
    ask(values.data(), values.size(), kInt64, kSum);
  }
  void max(std::span<double> values) override { ask(values.data(), values.size(), kDouble, kMax); }

 private:
  static constexpr int kDouble = 2, kInt64 = 7;  // XGBoost's numbers of types and operations
  static constexpr int kMax = 0, kSum = 2;

  void ask(void* values, std::size_t n, int type, int operation) const {
    if (n > 0 && all_reduce_(values, n, type, operation) != 0) {
      throw std::runtime_error(std::string("another worker does not answer: ") + last_error_());
    }
  }

  AllReduce all_reduce_;
  LastError last_error_;
};

/// The rows that this process holds of a table.
struct Part {
  Communicator* others = nullptr;  ///< null: these are all rows there are
  /// Of each row its position in the whole table, modulo 2^32; empty: that in the part.
  std::span<const std::uint32_t> number = {};

  std::uint32_t number_of(std::uint32_t row) const { return number.empty() ? row : number[row]; }

  /// Whatever all parts have together.
  void sum(std::span<std::int64_t> values) const {
    if (others) others->sum(values);
  }
  void max(std::span<double> values) const {
    if (others) others->max(values);
  }
  std::size_t sum(std::size_t value) const {
    std::int64_t all[] = {static_cast<std::int64_t>(value)};
    sum(all);
    return static_cast<std::size_t>(all[0]);
  }
};

}  // namespace hardwood
