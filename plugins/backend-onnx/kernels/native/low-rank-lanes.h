// Included by each file that is compiled for some instructions.
#pragma once
#include "lanes.h"
#include "low-rank.h"

namespace rakit {
namespace {

// The products of a row and the 16 ranks of a tile, `down [columns, 16]`. Four sums take turns, as one
// would wait for itself.
void lower(const float* row, size_t columns, const float* down, float* sums) {
  constexpr size_t turns = 4, vectors = kTile / kLanes;
  Floats parts[turns][vectors] = {};
  for (size_t c = 0; c < columns; c++)
    for (size_t v = 0; v < vectors; v++)
      parts[c % turns][v] += load(down + c * kTile + v * kLanes) * row[c];
  for (size_t v = 0; v < vectors; v++)
    store(sums + v * kLanes, (parts[0][v] + parts[1][v]) + (parts[2][v] + parts[3][v]));
}

// Adds to `count` outputs what the 16 ranks of a tile make of them, `up [16, stride]`.
void raise(const float* sums, const float* up, size_t stride, size_t count, float* to) {
  for (size_t i = 0; i < count; i += kLanes) {
    Floats sum{};
    for (size_t rank = 0; rank < kTile; rank++)
      sum += load_padded(up + rank * stride + i, count - i) * sums[rank];
    store_some(to + i, load_padded(to + i, count - i) + sum, count - i);
  }
}

}  // namespace
}  // namespace rakit
