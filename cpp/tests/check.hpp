#pragma once

#include <concepts>
#include <limits>
#include <ranges>
#include <source_location>
#include <sstream>
#include <string>
#include <utility>

/// A small test runner. The usual ones are not on the package index that a fresh machine has, and
/// the core needs no more than named cases and checks that say where they failed, and with what.
namespace hardwood::tests {

/// A named test; define one at namespace scope: `const Case name{"room: what holds", [] { ... }};`
struct Case {
  Case(const char* name, void (*run)());
};

/// Count a check; on failure say where and what, and go on.
void check(bool holds, const std::string& what,
           std::source_location where = std::source_location::current());

/// The call must throw std::invalid_argument with `words` in its message.
void check_refused(void (*call)(), const std::string& words,
                   std::source_location where = std::source_location::current());

template <class T>
void print(std::ostream& out, const T& value) {
  if constexpr (std::ranges::range<T> && !std::convertible_to<T, std::string>) {
    out << '{';
    int n = 0;
    for (const auto& one : value) {
      if (n++) out << ", ";
      if (n > 16) {
        out << "...";
        break;
      }
      print(out, one);
    }
    out << '}';
  } else if constexpr (std::integral<T>) {
    out << +value;  // small ones as numbers
  } else if constexpr (requires { out << value; }) {
    out << value;
  } else {
    out << "(something)";
  }
}

/// Two operands and whether they compare as they should.
struct Compared {
  bool holds;
  std::string operands;  ///< empty if it holds
};

/// The left side of a comparison.
template <class T>
class Operand {
 public:
  explicit Operand(const T& left) : left_(left) {}

  template <class U>
  Compared operator==(const U& right) const {
    if constexpr (whole<U>)
      return told(std::cmp_equal(left_, right), "==", right);
    else
      return told(left_ == right, "==", right);
  }
  template <class U>
  Compared operator!=(const U& right) const {
    return told(!(*this == right).holds, "!=", right);
  }
  template <class U>
  Compared operator<(const U& right) const {
    if constexpr (whole<U>)
      return told(std::cmp_less(left_, right), "<", right);
    else
      return told(left_ < right, "<", right);
  }
  template <class U>
  Compared operator<=(const U& right) const {
    if constexpr (whole<U>)
      return told(std::cmp_less_equal(left_, right), "<=", right);
    else
      return told(left_ <= right, "<=", right);
  }
  template <class U>
  Compared operator>(const U& right) const {
    if constexpr (whole<U>)
      return told(std::cmp_greater(left_, right), ">", right);
    else
      return told(left_ > right, ">", right);
  }
  template <class U>
  Compared operator>=(const U& right) const {
    if constexpr (whole<U>)
      return told(std::cmp_greater_equal(left_, right), ">=", right);
    else
      return told(left_ >= right, ">=", right);
  }

 private:
  template <class N>
  static constexpr bool number = std::integral<N> && !std::same_as<N, bool>;
  template <class U>
  static constexpr bool whole = number<T> && number<U>;  // may differ in sign

  template <class U>
  Compared told(bool holds, const char* how, const U& right) const {
    if (holds) return {true, {}};
    std::ostringstream out;
    out.precision(std::numeric_limits<double>::max_digits10);
    print(out, left_);
    out << ' ' << how << ' ';
    print(out, right);
    return {false, out.str()};
  }

  const T& left_;
};

/// Makes a comparison say its operands when it fails: `check(that(found) == truth, "the nearest")`.
template <class T>
Operand<T> that(const T& left) {
  return Operand<T>(left);
}

/// Count a check of a comparison.
inline void check(const Compared& compared, const std::string& what,
                  std::source_location where = std::source_location::current()) {
  check(compared.holds, compared.holds ? what : what + ": " + compared.operands, where);
}

}  // namespace hardwood::tests
