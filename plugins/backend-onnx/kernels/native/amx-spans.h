// Groups of 16 rows by tiles, of levels whose scales are for sub-blocks. A tile adds up a whole span, of
// levels that were multiplied by their steps.
#pragma once
#include <algorithm>

#include "amx-blocks.h"
#include "avx512-spans.h"

namespace rakit {
namespace {

constexpr size_t kTileBytes = kPanel * 2 * kBlock;
constexpr size_t kUnpackedSpans = kUnpackedBlocks / kSpan;

// Spans of a panel: levels less `zero` times steps, 1,024 bytes for two blocks, as a tile takes
// them. In 2 and 3 bits that fits into 8 bits (at most 3 times 15, and -4 to 3 times -31 to 32); in 6 it
// is `levels` and 128 times `high_levels`. `shift_counts` has two of 16 bits, for both halves of a block.
struct alignas(64) UnpackedSpans {
  int8_t levels[kUnpackedBlocks / 2][kTileBytes], high_levels[kUnpackedBlocks / 2][kTileBytes];
  float units[kUnpackedSpans][kPanel], shift_units[kUnpackedSpans][kPanel];
  int32_t shift_counts[kUnpackedBlocks][kPanel];
};

// Tiles that two blocks take.
constexpr size_t planes_of(Levels kind) { return kind == Levels::kSixes ? 2 : 1; }

// Products in 16 bits, of the even and the odd bytes.
struct Products {
  __m512i even, odd;
};

inline Products products_of(__m512i levels, __m512i counts) {
  return {_mm512_mullo_epi16(_mm512_srai_epi16(_mm512_slli_epi16(levels, 8), 8), counts),
          _mm512_mullo_epi16(_mm512_srai_epi16(levels, 8), counts)};
}

// The low bytes of both.
inline __m512i bytes_of(const Products& products) {
  return _mm512_mask_blend_epi8(0xaaaaaaaaaaaaaaaa, products.even,
                                _mm512_slli_epi16(products.odd, 8));
}

template <Levels Kind>
inline void write_products(__m512i levels, __m512i counts, int8_t* low, int8_t* high) {
  Products products = products_of(levels, counts);
  if constexpr (planes_of(Kind) == 1) {
    _mm512_store_si512(low, bytes_of(products));
  } else {
    // -64 to 63 in `low`
    const __m512i half = _mm512_set1_epi16(64);
    products = {_mm512_add_epi16(products.even, half), _mm512_add_epi16(products.odd, half)};
    _mm512_store_si512(high, bytes_of({_mm512_srai_epi16(products.even, 7),
                                       _mm512_srai_epi16(products.odd, 7)}));
    const __m512i rest = _mm512_and_si512(bytes_of(products), _mm512_set1_epi8(127));
    _mm512_store_si512(low, _mm512_sub_epi8(rest, _mm512_set1_epi8(64)));
  }
}

template <Levels Kind>
void unpack(const Weights& weights, const Blocks& blocks, UnpackedSpans& to) {
  constexpr size_t bytes = block_bytes(Kind);
  const size_t start = blocks.panel * weights.blocks + blocks.first;
  const uint8_t* from = weights.levels + start * bytes;
  const __m512i zero = _mm512_set1_epi8(static_cast<char>(weights.zero));
  for (size_t b = 0; b < blocks.count; b++, from += bytes) {
    __m512i levels[8];
    read_ahead(from, bytes);
    load_levels<Kind>(from, _mm512_setzero_si512(), levels);
    const size_t sub = 2 * (start + b), at = b % 2 * kTileBytes / 2;
    const Steps steps[2] = {weights.sub_steps(sub, false), weights.sub_steps(sub + 1, false)};
    const __m512i counts[2] = {load_counts(steps[0], steps[0]), load_counts(steps[1], steps[1])};
#pragma GCC unroll 8
    for (int g = 0; g < 8; g++)
      write_products<Kind>(_mm512_sub_epi8(levels[g], zero), counts[g / 4],
                           to.levels[b / 2] + at + 64 * g, to.high_levels[b / 2] + at + 64 * g);
    if (b % kSpan == 0)
      _mm512_store_ps(to.units[b / kSpan], floats_of(steps[0].units));
    if (!weights.shifts) continue;
    const Steps first = weights.sub_steps(sub, true);
    _mm512_store_si512(to.shift_counts[b], load_counts(first, weights.sub_steps(sub + 1, true)));
    if (b % kSpan == 0) _mm512_store_ps(to.shift_units[b / kSpan], floats_of(first.units));
  }
}

// The numbers of tiles are part of the instructions.
#define RAKIT_ADD_PRODUCTS(sum, x_tile, levels_tile, x, levels) \
  do {                                                          \
    _tile_loadd(x_tile, x, 2 * kBlock);                         \
    _tile_loadd(levels_tile, levels, 64);                       \
    _tile_dpbssd(sum, x_tile, levels_tile);                     \
  } while (0)

// Adds the products of spans to the outputs of a full group of rows, which the first block sets. Four
// sums are made at a time, as one has to wait for its own last product: of four spans, or of two with
// two planes. They are scaled while the tiles of the next four are multiplied.
template <Levels Kind, bool Shifted>
void multiply_tiles(const Product& product, size_t group, const Blocks& blocks,
                    const UnpackedSpans& unpacked) {
  constexpr size_t planes = planes_of(Kind), pairs = kSpan / 2;
  const auto& [weights, rows, out] = product;
  const size_t start = (group * weights.blocks + blocks.first) * kGroup;
  const int8_t* x = rows.levels + start * kBlock;
  const float* scales = rows.scales + start / kSpan;
  const int16_t* sub_sums = rows.sub_sums + start / kSpan * kSpanSubs;
  float* to = out + group * kGroup * weights.outputs + blocks.panel * kPanel;
  const __mmask16 lanes = lanes_of(weights, blocks.panel);
  alignas(64) int32_t made[4][256];
  __m512 total[16];
#pragma GCC unroll 16
  for (int r = 0; r < 16; r++) {
    float* row = to + r * weights.outputs;
    total[r] = blocks.first ? _mm512_maskz_loadu_ps(lanes, row) : _mm512_setzero_ps();
    __builtin_prefetch(row, 1);
  }
  const size_t sums = blocks.count / kSpan * planes;
  const auto x_of = [&](size_t sum, size_t pair) {
    return x + (sum / planes * pairs + pair) * kGroup * 2 * kBlock;
  };
  const auto levels_of = [&](size_t sum, size_t pair) {
    return (sum % planes ? unpacked.high_levels : unpacked.levels)[sum / planes * pairs + pair];
  };
  const auto multiply = [&](size_t sum) __attribute__((always_inline)) {
    const size_t left = sums - sum;
    _tile_zero(0);
    _tile_zero(1);
    _tile_zero(2);
    _tile_zero(3);
    for (size_t pair = 0; pair < pairs; pair++) {
      RAKIT_ADD_PRODUCTS(0, 4, 6, x_of(sum, pair), levels_of(sum, pair));
      if (left > 1) RAKIT_ADD_PRODUCTS(1, 5, 7, x_of(sum + 1, pair), levels_of(sum + 1, pair));
      if (left > 2) RAKIT_ADD_PRODUCTS(2, 4, 6, x_of(sum + 2, pair), levels_of(sum + 2, pair));
      if (left > 3) RAKIT_ADD_PRODUCTS(3, 5, 7, x_of(sum + 3, pair), levels_of(sum + 3, pair));
    }
  };
  const auto add = [&](size_t span, const int32_t* low) __attribute__((always_inline)) {
    const __m512 unit = _mm512_load_ps(unpacked.units[span]);
    const __m512 shift_unit = Shifted ? _mm512_load_ps(unpacked.shift_units[span]) : unit;
#pragma GCC unroll 16
    for (int r = 0; r < 16; r++) {
      __m512i sum = _mm512_load_si512(low + 16 * r);
      if constexpr (planes > 1)
        sum = _mm512_add_epi32(sum, _mm512_slli_epi32(_mm512_load_si512(low + 256 + 16 * r), 7));
      const float row_scale = scales[span * kGroup + r];
      total[r] = plus_scaled(total[r], sum, unit, row_scale);
      if constexpr (Shifted) {
        const int16_t* own = sub_sums + (span * kGroup + r) * kSpanSubs;
        __m512i shift = _mm512_setzero_si512();
        for (size_t b = 0; b < kSpan; b++)
          shift = _mm512_dpwssd_epi32(
              shift, _mm512_load_si512(unpacked.shift_counts[span * kSpan + b]),
              broadcast(own + 2 * b));
        total[r] = plus_scaled(total[r], shift, shift_unit, row_scale);
      }
    }
  };
  multiply(0);
  for (size_t sum = 0; sum < sums; sum += 4) {
    _tile_stored(0, made[0], 64);
    _tile_stored(1, made[1], 64);
    _tile_stored(2, made[2], 64);
    _tile_stored(3, made[3], 64);
    if (sum + 4 < sums) multiply(sum + 4);
    for (size_t i = 0; i < 4 && sum + i < sums; i += planes) add((sum + i) / planes, made[i]);
  }
#pragma GCC unroll 16
  for (int r = 0; r < 16; r++)
    _mm512_mask_storeu_ps(to + r * weights.outputs, lanes, total[r]);
}
#undef RAKIT_ADD_PRODUCTS

}  // namespace
}  // namespace rakit
