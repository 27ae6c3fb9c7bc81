#include "avx512-spans.h"

#include "any-levels.h"

namespace rakit {

const Kernels kAvx512{kLaneKernels, "avx512", quantize_row, multiply_each, 0, 1};

}  // namespace rakit
