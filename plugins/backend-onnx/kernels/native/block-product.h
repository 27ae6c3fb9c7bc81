// Products of rows of floats with a matrix that is kept in blocks of 32 levels of 4 or 8 bits.
#pragma once
#include "attention.h"
#include "gated-unit.h"

#include <cstddef>
#include <cstdint>

namespace rakit {

constexpr size_t kBlock = 32;       // values that share a scale
constexpr size_t kPanel = 16;       // outputs that stand together
constexpr size_t kGroup = 16;       // rows of x that stand together

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
  size_t scale_bytes() const { return halves ? 2 : 4; }
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

// What one kind of processor does. A row's numbers are the same whatever stands beside it, as the
// sums of a block are integers and blocks are added in their order.
struct Kernels {
  const char* name;
  // Quantizes a group of rows, `x [count, columns]`.
  void (*quantize)(const float* x, const Weights&, const Rows&, size_t group);
  // Writes the outputs of the panels `from` to `to`. `scratch` has `scratch_bytes`.
  void (*multiply)(const Product&, size_t from, size_t to, void* scratch);
  size_t (*scratch_bytes)(const Weights&);
  // Attends from the queries of a part; see attention.h.
  void (*attend)(const Attention&, size_t part, void* scratch);
  size_t (*attention_scratch_bytes)(const Attention&);
  void (*to_halves)(const float* from, size_t count, uint16_t* to);
  // Writes the rows `first` to `end` of a gated unit.
  void (*gate)(const GatedRows&, Activation, size_t first, size_t end);
};

extern const Kernels kAvx2;
extern const Kernels kAvx512;
extern const Kernels kAmx;

}  // namespace rakit
