#include "avx2-spans.h"

#include "any-levels.h"

namespace rakit {

const Kernels kAvx2{kLaneKernels, "avx2", quantize_row, multiply_each, 0, 1};

}  // namespace rakit
