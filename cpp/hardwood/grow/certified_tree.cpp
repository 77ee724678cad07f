#include "hardwood/grow/certified_tree.hpp"

#include <stdexcept>
#include <string>

#include "hardwood/grow/certified_table.hpp"

namespace hardwood::grow {

template <class Code>
CertifiedTree grow_certified(const bins::EndCodes<Code>& codes, CertifiedRequest request,
                             Pool& pool) {
  if (request.slopes.size() != 2 * codes.n_rows()) {
    throw std::invalid_argument("slopes needs two entries for each of the table's " +
                                std::to_string(codes.n_rows()) + " rows, got " +
                                std::to_string(request.slopes.size()) + ".");
  }
  if (!request.rows.size() && !request.part.others) {
    throw std::invalid_argument("rows must keep at least one row.");
  }
  const Grid grid =
      choose_grid(column_of(request), rows_of(request), request.rules.min_samples_leaf > 1,
                  request.n_threads, request.part);
  CertifiedTree grown;
  grown.g_total = grid.g_total;
  grown.h_total = grid.h_total;
  const auto grow_on = [&]<class Stat>() {
    CertifiedTable<Stat, Code> table(codes, request, grid, pool, grown);
    grown.tree = Grower(table, checkpoint).grow();
  };
  grid.wide ? grow_on.template operator()<Wide>() : grow_on.template operator()<Packed>();
  return grown;
}

template CertifiedTree grow_certified(const bins::EndCodes<std::uint8_t>&, CertifiedRequest, Pool&);
template CertifiedTree grow_certified(const bins::EndCodes<std::uint16_t>&, CertifiedRequest,
                                      Pool&);

}  // namespace hardwood::grow
