#include "avx512-panels.h"

namespace rakit {
namespace {

void multiply(const Product& product, size_t from, size_t to, void*) {
  if (product.weights.bits == 4) multiply_panels<4>(product, from, to);
  else multiply_panels<8>(product, from, to);
}

}  // namespace

const Kernels kAvx512{kLaneKernels, "avx512", quantize_row, multiply, 0, 1};

}  // namespace rakit
