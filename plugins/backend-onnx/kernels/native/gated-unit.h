// Gated linear units (Shazeer, arXiv 2002.05202): an activation of one half of a row times the other.
#pragma once
#include <cstddef>

namespace rakit {

enum class Activation { kNone = 0, kSilu = 1, kGelu = 2 };

struct GatedRows {
  size_t columns;  // of the output
  const float* x;  // [rows, 2 * columns]: a row's gates, then what they scale
  float* out;      // [rows, columns]
};

}  // namespace rakit
