// Products of rows of floats with a matrix that is kept in blocks of 32 levels of 2 to 6 or 8 bits.
#pragma once
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace rakit {

constexpr size_t kBlock = 32;       // values that share a scale, or the halves of which do
constexpr size_t kPanel = 16;       // outputs that stand together
constexpr size_t kGroup = 16;       // rows of x that stand together

// Bytes that memory is read ahead by, by hand: the processor's own prefetching ends at each page.
constexpr size_t kAhead = 4096;

constexpr size_t kSuper = 8;        // blocks that share the unit of a scale in steps
constexpr size_t kSubBlocks = 16;   // halves of these blocks, where they have scales of their own
constexpr size_t kSpan = 4;         // blocks of a row of x that share a scale then
constexpr size_t kSpanSubs = 2 * kSpan;

// Bits of a level; codes have 4, which choose one of 16 numbers of 8 bits.
enum class Levels { kTwos = 2, kThrees, kNibbles, kFives, kSixes, kBytes = 8, kCodes };

constexpr bool has_levels_of(int bits) { return (bits >= 2 && bits <= 6) || bits == 8; }

constexpr size_t block_bytes(int bits) { return kPanel * kBlock * bits / 8; }
constexpr size_t block_bytes(Levels kind) {
  return block_bytes(kind == Levels::kCodes ? 4 : static_cast<int>(kind));
}

// Whether the halves of a block have scales of their own, always in steps: in 2, 3 and 6 bits
// (groupValues of ggml-blocks.ts). Rows of x then have a scale for a span of several blocks, and sums
// within it are whole numbers, so kernels may add products first or multiply levels by steps first.
constexpr bool has_sub_blocks(Levels kind) {
  return kind == Levels::kTwos || kind == Levels::kThrees || kind == Levels::kSixes;
}

// The largest of some magnitudes by its bits, whose order is that of the numbers, with infinity and
// then NaN at the end: a maximum of floats may lose a NaN, and the row would look sound.
inline float magnitude_of(uint32_t bits) {
  float most;
  memcpy(&most, &bits, sizeof most);
  return most;
}

// What values are multiplied by to become levels, 127 on each side of 0. Those whose factor would be
// infinite are 0.
inline float level_factor(float most) { return most >= 1e-36f ? 127 / most : 0; }

// What a level stands for: NaN where a value is not finite, whose level means nothing.
inline float level_scale(float most) { return most / 127 + (most - most); }

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
// (high); in one of 8 bits it has that of column 4 g + j; in one of 2 bits those of the columns
// 16 g + j, 16 g + 4 + j, 16 g + 8 + j and 16 g + 12 + j, from the lowest bits on. In one of 5 bits the
// low four are as in 4 bits, and bit 64 g + 4 n + j of the 64 bytes behind them is the fifth of column
// 4 g + j; one of 3 bits has such third bits behind two low bits; one of 6 bits has four low bits, then
// two high ones as in 2 bits.
struct Weights {
  size_t outputs, columns, blocks;
  int bits;
  int zero;               // level that stands for 0, or code
  Scales scale_kind;
  const uint8_t* levels;
  const uint8_t* codes;   // [16], or null
  const void* scales;     // [panels, blocks, 16], or steps
  const void* shifts;     // the same; null where there are none

  Levels levels_kind() const { return codes ? Levels::kCodes : static_cast<Levels>(bits); }
  size_t panels() const { return (outputs + kPanel - 1) / kPanel; }

  // Steps are kept in [panels, blocks / 8] records: the units of a panel's scales, then of its shifts,
  // then for each block, or sub-block, the counts of scales and of shifts.
  static size_t record_bytes(size_t parts, size_t in_super) {
    return parts * kPanel * (sizeof(uint16_t) + in_super);
  }
  // Always inline, as files that include it have other instructions.
  template <size_t InSuper = kSuper>
  __attribute__((always_inline)) Steps steps(size_t block, bool of_shifts) const {
    const size_t parts = shifts ? 2 : 1, part = of_shifts ? 1 : 0;
    const char* record =
        static_cast<const char*>(scales) + block / InSuper * record_bytes(parts, InSuper);
    const char* counts = record + parts * kPanel * sizeof(uint16_t);
    return {reinterpret_cast<const uint16_t*>(record) + part * kPanel,
            reinterpret_cast<const int8_t*>(counts) + (block % InSuper * parts + part) * kPanel};
  }
  __attribute__((always_inline)) Steps sub_steps(size_t sub_block, bool of_shifts) const {
    return steps<kSubBlocks>(sub_block, of_shifts);
  }
};

// Rows of x in int8, a scale for each block: [groups, blocks, rows of the group, 32]. The last group
// has as many rows as are left. With sub-blocks, a scale for each span: [groups, blocks / 2, rows of the
// group, 64].
struct Rows {
  size_t count, blocks;
  int8_t* levels;
  float* scales;          // [groups, blocks or spans, rows of the group]
  int32_t* starts;        // [groups, blocks or sub-blocks, rows]: -zero times the sum of the levels;
                          // AVX2 does without in sub-blocks
  float* sums;            // as scales: scale times the sum of the levels; only where the matrix has shifts
  int16_t* sub_sums;      // [groups, spans, rows, sub-blocks]: the sum of the levels

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
