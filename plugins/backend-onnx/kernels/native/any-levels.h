// Rows by any kind of levels. Included by each file that is compiled for some instructions, after its
// own multiply_rows, multiply_span_rows, quantize_blocks, quantize_spans, and kMostRows at once.
#pragma once
#include <algorithm>
#include <type_traits>
#include <utility>

#include "block-product.h"

namespace rakit {
namespace {

template <Levels Kind, int Count>
void multiply_some(const Product& product, size_t panel, size_t group, size_t first) {
  if constexpr (has_sub_blocks(Kind))
    multiply_span_rows<Kind, Count>(product, panel, group, first);
  else
    multiply_rows<Kind, Count>(product, panel, group, first);
}

template <Levels Kind, int... Fewer>
void multiply_group(const Product& product, size_t panel, size_t group,
                    std::integer_sequence<int, Fewer...>) {
  using Run = void (*)(const Product&, size_t, size_t, size_t);
  static constexpr Run runs[] = {multiply_some<Kind, Fewer + 1>...};
  const size_t count = product.rows.in_group(group);
  for (size_t first = 0; first < count; first += kMostRows)
    runs[std::min<size_t>(count - first, kMostRows) - 1](product, panel, group, first);
}

// The rows of a group, so many at once as the registers hold.
template <Levels Kind>
void multiply_group(const Product& product, size_t panel, size_t group) {
  multiply_group<Kind>(product, panel, group, std::make_integer_sequence<int, kMostRows>{});
}

// All rows of the panels `from` to `to`.
template <Levels Kind>
void multiply_panels(const Product& product, size_t from, size_t to) {
  for (size_t panel = from; panel < to; panel++)
    for (size_t group = 0; group * kGroup < product.rows.count; group++)
      multiply_group<Kind>(product, panel, group);
}

// Calls `run` with the kind as a constant.
template <typename Run>
inline void with_kind(Levels kind, const Run& run) {
  switch (kind) {
    case Levels::kTwos: return run(std::integral_constant<Levels, Levels::kTwos>{});
    case Levels::kThrees: return run(std::integral_constant<Levels, Levels::kThrees>{});
    case Levels::kNibbles: return run(std::integral_constant<Levels, Levels::kNibbles>{});
    case Levels::kFives: return run(std::integral_constant<Levels, Levels::kFives>{});
    case Levels::kSixes: return run(std::integral_constant<Levels, Levels::kSixes>{});
    case Levels::kBytes: return run(std::integral_constant<Levels, Levels::kBytes>{});
    case Levels::kCodes: return run(std::integral_constant<Levels, Levels::kCodes>{});
  }
}

// A panel after the other, each for all rows; the kernels of AVX2 and AVX-512.
inline void multiply_each(const Product& product, size_t from, size_t to, void*) {
  with_kind(product.weights.levels_kind(), [&](auto kind) {
    multiply_panels<decltype(kind)::value>(product, from, to);
  });
}

inline void quantize_row(const float* x, const Weights& weights, const Rows& rows, size_t row) {
  if (has_sub_blocks(weights.levels_kind()))
    quantize_spans(x, weights, rows, row);
  else
    quantize_blocks(x, weights, rows, row);
}

}  // namespace
}  // namespace rakit
