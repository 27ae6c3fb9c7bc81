// Products of rows of floats with a matrix that is kept in blocks of 32 levels of 4, 5 or 8 bits.
#pragma once
#include <cstddef>
#include <cstdint>

namespace rakit {

constexpr size_t kBlock = 32;       // values that share a scale
constexpr size_t kPanel = 16;       // outputs that stand together
constexpr size_t kGroup = 16;       // rows of x that stand together

// Bytes that memory is read ahead by, by hand: the processor's own prefetching ends at each page.
constexpr size_t kAhead = 4096;

constexpr size_t kSuper = 8;        // blocks that share the unit of a scale in steps

// Whether a level has 8 bits, 5, 4, or 4 that choose one of 16 codes of 8 bits.
enum class Levels { kBytes, kFives, kNibbles, kCodes };

constexpr size_t block_bytes(int bits) { return kPanel * kBlock * bits / 8; }
constexpr size_t block_bytes(Levels kind) {
  return block_bytes(kind == Levels::kBytes ? 8 : kind == Levels::kFives ? 5 : 4);
}

// How the scale of a block is kept: as a float, as a half, or in steps, as a whole number (count) times
// a half (unit).
enum class Scales { kFloats, kHalves, kSteps };

// Those of the 16 outputs of a panel.
struct Steps {
  const uint16_t* units;
  const int8_t* counts;
};

// [panels, blocks, 16 outputs x 32 levels], as panel-blocks.ts writes it. In a block of 4 bits the
// byte 64 g + 4 n + j has, of output n, the levels of the columns 4 g + j (low) and 16 + 4 g + j
// (high); in one of 8 bits it has that of column 4 g + j. In one of 5 bits the low four are as in 4 bits,
// and bit 64 g + 4 n + j of the 64 bytes behind them is the fifth of column 4 g + j.
struct Weights {
  size_t outputs, columns, blocks;
  int bits;
  int zero;               // level that stands for 0, or code
  Scales scale_kind;
  const uint8_t* levels;
  const uint8_t* codes;   // [16], or null
  const void* scales;     // [panels, blocks, 16], or steps
  const void* shifts;     // the same; null where there are none

  Levels levels_kind() const {
    if (bits != 4) return bits == 8 ? Levels::kBytes : Levels::kFives;
    return codes ? Levels::kCodes : Levels::kNibbles;
  }
  size_t panels() const { return (outputs + kPanel - 1) / kPanel; }

  // Steps are kept in [panels, blocks / 8] records: the units of a panel's scales, then of its shifts,
  // then for each block the counts of scales and of shifts.
  static size_t record_bytes(size_t parts) { return parts * kPanel * (sizeof(uint16_t) + kSuper); }
  Steps steps(size_t block, bool of_shifts) const {
    const size_t parts = shifts ? 2 : 1, part = of_shifts ? 1 : 0;
    const char* record = static_cast<const char*>(scales) + block / kSuper * record_bytes(parts);
    const char* counts = record + parts * kPanel * sizeof(uint16_t);
    return {reinterpret_cast<const uint16_t*>(record) + part * kPanel,
            reinterpret_cast<const int8_t*>(counts) + (block % kSuper * parts + part) * kPanel};
  }
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
