#include "avx512-panels.h"

namespace rakit {
namespace {

template <int Bits>
void multiply_all(const Product& product, size_t from, size_t to) {
  for (size_t panel = from; panel < to; panel++)
    for (size_t first = 0; first < product.rows.count; first += kGroup)
      multiply_group<Bits>(product, panel, first / kGroup);
}

void multiply(const Product& product, size_t from, size_t to, void*) {
  if (product.weights.bits == 4) multiply_all<4>(product, from, to);
  else multiply_all<8>(product, from, to);
}

}  // namespace

const Kernels kAvx512{"avx512", quantize_group, multiply, [](const Weights&) -> size_t { return 0; },
                   attend, attention_scratch_bytes, to_halves, gate};

}  // namespace rakit
