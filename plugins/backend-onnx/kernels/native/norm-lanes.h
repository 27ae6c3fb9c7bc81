// RMSNorm (Zhang and Sennrich, arXiv 1910.07467). Included by each file that is compiled for some
// instructions.
#pragma once
#include <cmath>

#include "lanes.h"

namespace rakit {
namespace {

// What a row is divided by, inverted: the root of the mean of its squares.
inline float inverse_root_mean_square(const float* row, size_t size, float epsilon) {
  Floats squares{};
  for (size_t i = 0; i < size; i += kLanes) {
    const Floats values = load_padded(row + i, size - i);
    squares = fused(values, values, squares);
  }
  const float sum = fold(squares, [](Floats a, Floats b) { return a + b; });
  return 1 / std::sqrt(sum / static_cast<float>(size) + epsilon);
}

inline void normalize_row(const float* row, const float* weights, size_t size, float epsilon,
                          float* to) {
  const float scale = inverse_root_mean_square(row, size, epsilon);
  for (size_t i = 0; i < size; i += kLanes)
    store_some(to + i, load_padded(row + i, size - i) * scale * load_padded(weights + i, size - i),
               size - i);
}

inline void add_rows(const float* a, const float* b, size_t count, float* sum) {
  for (size_t i = 0; i < count; i += kLanes)
    store_some(sum + i, load_padded(a + i, count - i) + load_padded(b + i, count - i), count - i);
}

}  // namespace
}  // namespace rakit
