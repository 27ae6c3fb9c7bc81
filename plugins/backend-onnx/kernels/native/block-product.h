// Products of rows of floats with a matrix that is kept in blocks of 32 levels of 4 or 8 bits.
#pragma once
#include <cstddef>
#include <cstdint>

namespace rakit {

constexpr size_t kBlock = 32;       // values that share a scale
constexpr size_t kPanel = 16;       // outputs that stand together
constexpr size_t kGroup = 16;       // rows of x that stand together

// Bytes that memory is read ahead by, by hand: the processor's own prefetching ends at each page.
constexpr size_t kAhead = 4096;

// [panels, blocks, 16 outputs x 32 levels], as panel-blocks.ts writes it. In a block of 4 bits the
// byte 64 g + 4 n + j has, of output n, the levels of the columns 4 g + j (low) and 16 + 4 g + j
// (high); in one of 8 bits it has that of column 4 g + j.
struct Weights {
  size_t outputs, columns, blocks;
  int bits;
  int zero;               // level that stands for 0
  bool halves;            // scales and shifts are float16, not float
  const uint8_t* levels;
  const void* scales;     // [panels, blocks, 16]
  const void* shifts;     // the same, or null

  size_t block_bytes() const { return kPanel * kBlock * bits / 8; }
  size_t panels() const { return (outputs + kPanel - 1) / kPanel; }
};

// Rows of x in int8, a scale for each block: [groups, blocks, rows of the group, 32]. The last group
// has as many rows as are left.
struct Rows {
  size_t count, blocks;
  int8_t* levels;
  float* scales;          // [groups, blocks, rows of the group]
  int32_t* starts;        // the same: -zero times the sum of the block's levels
  float* sums;            // the same: scale times that sum; only where the matrix has shifts

  size_t in_group(size_t group) const {
    const size_t left = count - group * kGroup;
    return left < kGroup ? left : kGroup;
  }
};

struct Product {
  const Weights& weights;
  const Rows& rows;
  float* out;             // [rows, outputs]
};

}  // namespace rakit
