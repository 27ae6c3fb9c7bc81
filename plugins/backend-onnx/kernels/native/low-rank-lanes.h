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
      parts[c % turns][v] =
          fused(load(down + c * kTile + v * kLanes), all(row[c]), parts[c % turns][v]);
  for (size_t v = 0; v < vectors; v++)
    store(sums + v * kLanes, (parts[0][v] + parts[1][v]) + (parts[2][v] + parts[3][v]));
}

// What the 16 ranks of a tile make of a register of outputs.
template <typename Load>
inline Floats raised(const float* sums, const Load& load_rank) {
  Floats even{}, odd{};
  for (size_t rank = 0; rank < kTile; rank += 2) {
    even = fused(load_rank(rank), all(sums[rank]), even);
    odd = fused(load_rank(rank + 1), all(sums[rank + 1]), odd);
  }
  return even + odd;
}

// Adds to `count` outputs what the 16 ranks of a tile make of them, `up [16, stride]`.
void raise(const float* sums, const float* up, size_t stride, size_t count, float* to) {
  size_t i = 0;
  for (; i + kLanes <= count; i += kLanes)
    store(to + i, load(to + i) + raised(sums, [&](size_t rank) {
                    return load(up + rank * stride + i);
                  }));
  if (i == count) return;
  const Floats last = raised(sums, [&](size_t rank) {
    return load_padded(up + rank * stride + i, count - i);
  });
  store_some(to + i, load_padded(to + i, count - i) + last, count - i);
}

}  // namespace
}  // namespace rakit
