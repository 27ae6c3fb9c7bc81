// Rows of any kind of levels by AVX2.
#include "avx2-spans.h"

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
void multiply_panels(const Product& product, size_t from, size_t to) {
  using Run = void (*)(const Product&, size_t, size_t, size_t);
  static constexpr Run runs[] = {multiply_some<Kind, 1>, multiply_some<Kind, 2>,
                                 multiply_some<Kind, 3>, multiply_some<Kind, 4>,
                                 multiply_some<Kind, 5>, multiply_some<Kind, 6>};
  constexpr size_t most = sizeof runs / sizeof *runs;
  for (size_t panel = from; panel < to; panel++)
    for (size_t group = 0; group * kGroup < product.rows.count; group++) {
      const size_t count = product.rows.in_group(group);
      for (size_t first = 0; first < count; first += most)
        runs[std::min(count - first, most) - 1](product, panel, group, first);
    }
}

void multiply(const Product& product, size_t from, size_t to, void*) {
  switch (product.weights.levels_kind()) {
    case Levels::kTwos: return multiply_panels<Levels::kTwos>(product, from, to);
    case Levels::kThrees: return multiply_panels<Levels::kThrees>(product, from, to);
    case Levels::kNibbles: return multiply_panels<Levels::kNibbles>(product, from, to);
    case Levels::kFives: return multiply_panels<Levels::kFives>(product, from, to);
    case Levels::kSixes: return multiply_panels<Levels::kSixes>(product, from, to);
    case Levels::kBytes: return multiply_panels<Levels::kBytes>(product, from, to);
    case Levels::kCodes: return multiply_panels<Levels::kCodes>(product, from, to);
  }
}

void quantize_row(const float* x, const Weights& weights, const Rows& rows, size_t row) {
  if (has_sub_blocks(weights.levels_kind()))
    quantize_spans(x, weights, rows, row);
  else
    quantize_blocks(x, weights, rows, row);
}

}  // namespace

const Kernels kAvx2{kLaneKernels, "avx2", quantize_row, multiply, 0, 1};

}  // namespace rakit
