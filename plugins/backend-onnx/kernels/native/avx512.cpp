#include "avx512-products.h"

namespace rakit {
namespace {

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

}  // namespace

const Kernels kAvx512{kLaneKernels, "avx512", quantize_row, multiply, 0, 1};

}  // namespace rakit
