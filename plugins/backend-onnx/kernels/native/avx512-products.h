// Rows of any kind of levels by AVX-512.
#pragma once
#include "avx512-spans.h"

namespace rakit {
namespace {

template <Levels Kind, int Count>
void multiply_some(const Product& product, size_t panel, size_t group, size_t first) {
  if constexpr (has_sub_blocks(Kind))
    multiply_span_rows<Kind, Count>(product, panel, group, first);
  else
    multiply_rows<Kind, Count>(product, panel, group, first);
}

template <Levels Kind>
void multiply_group(const Product& product, size_t panel, size_t group) {
  using Run = void (*)(const Product&, size_t, size_t, size_t);
  static constexpr Run runs[] = {
      multiply_some<Kind, 1>, multiply_some<Kind, 2>, multiply_some<Kind, 3>,
      multiply_some<Kind, 4>, multiply_some<Kind, 5>, multiply_some<Kind, 6>,
      multiply_some<Kind, 7>, multiply_some<Kind, 8>,
  };
  const size_t count = product.rows.in_group(group);
  for (size_t first = 0; first < count; first += 8)
    runs[(count - first < 8 ? count - first : 8) - 1](product, panel, group, first);
}

// All rows of the panels `from` to `to`.
template <Levels Kind>
void multiply_panels(const Product& product, size_t from, size_t to) {
  for (size_t panel = from; panel < to; panel++)
    for (size_t group = 0; group * kGroup < product.rows.count; group++)
      multiply_group<Kind>(product, panel, group);
}

inline void quantize_row(const float* x, const Weights& weights, const Rows& rows, size_t row) {
  if (has_sub_blocks(weights.levels_kind()))
    quantize_spans(x, weights, rows, row);
  else
    quantize_blocks(x, weights, rows, row);
}

}  // namespace
}  // namespace rakit
