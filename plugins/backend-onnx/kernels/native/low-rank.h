// Low-rank adapters of a product (LoRA: Hu et al., arXiv 2106.09685): those of all rows side by side,
// in tiles of 16 ranks. A row reads only the tiles that it has a scale for, in their order, so that its
// numbers are the same whatever stands beside it.
#pragma once
#include <cstddef>

namespace rakit {

constexpr size_t kTile = 16;

struct LowRank {
  size_t ranks;         // a multiple of 16; 0: no row has an adapter
  size_t steps;         // rows of a sequence
  float factor;         // of all products
  const float* down;    // [ranks / 16, columns, 16]
  const float* up;      // [ranks, outputs]
  const float* scales;  // [sequences, ranks]
  float* inner;         // [rows, ranks]: scaled products of the rows and `down`

  const float* scales_of(size_t row) const { return scales + row / steps * ranks; }
  bool is_used(size_t row, size_t tile) const {
    for (size_t i = 0; i < kTile; i++)
      if (scales_of(row)[tile * kTile + i] != 0) return true;
    return false;
  }
};

}  // namespace rakit
