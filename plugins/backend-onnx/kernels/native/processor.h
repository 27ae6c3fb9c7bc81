#pragma once
#include "block-product.h"

namespace rakit {

// The fastest kernels of this processor; null where it has none of their instructions.
const Kernels* kernels();

}  // namespace rakit
