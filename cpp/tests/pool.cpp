#include "hardwood/pool.hpp"

#include <cstddef>
#include <cstdint>
#include <utility>

#include "check.hpp"

namespace hardwood::tests {
namespace {

const Case pieces_are_lent_again_or_exchanged{
    "pool: a piece that fits is lent again, others go when a new one comes", [] {
      constexpr std::size_t kMega = std::size_t{1} << 20;
      Pool pool;
      Pooled<std::uint32_t> first = pool.take<std::uint32_t>(kMega);
      const void* const place = first.data();
      first[kMega - 1] = 7;
      pool.give_back(std::move(first));
      Pooled<double> again = pool.take<double>(kMega / 2);
      check(again.data() == place, "four megabytes are lent as another type");
      check(pool.n_free() == 0, "nothing is left");
      pool.give_back(std::move(again));
      pool.give_back(pool.take<char>(1));
      check(pool.n_free() == 2, "too large for a byte, and kept beside it");
      for (const std::size_t n : {kMega, 2 * kMega, 10 * kMega}) {
        Pooled<char> one = pool.take<char>(n), two = pool.take<char>(n);
        pool.give_back(std::move(one));
        pool.give_back(std::move(two));
      }
      check(pool.n_free() == 2, "of all of these only the last two are kept");
    }};

}  // namespace
}  // namespace hardwood::tests
