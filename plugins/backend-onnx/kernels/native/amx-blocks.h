// Groups of 16 rows by tiles, of levels whose scales are for blocks.
#pragma once
#include "avx512-panels.h"

namespace rakit {
namespace {

// Blocks of a panel that are unpacked at a time, as they have to stay in the caches for all groups.
constexpr size_t kUnpackedBlocks = 64;

// The blocks `first` to `first + count` of a panel.
struct Blocks {
  size_t panel, first, count;
};

// Blocks of a panel: levels less `zero`, 512 bytes as a tile takes them, rows of 4 columns of 16 outputs;
// scales and shifts as floats, so that they are converted once for all groups of rows.
struct alignas(64) Unpacked {
  int8_t levels[kUnpackedBlocks][kPanel * kBlock];
  float scales[kUnpackedBlocks][kPanel], shifts[kUnpackedBlocks][kPanel];
};

template <Levels Kind>
void unpack(const Weights& weights, const Blocks& blocks, Unpacked& to) {
  constexpr size_t bytes = block_bytes(Kind);
  const size_t start = blocks.panel * weights.blocks + blocks.first;
  const uint8_t* from = weights.levels + start * bytes;
  const __m512i zero = _mm512_set1_epi8(static_cast<char>(weights.zero));
  const __m512i codes = load_codes(weights);
  for (size_t b = 0; b < blocks.count; b++) {
    __m512i levels[8];
    read_ahead(from, bytes);
    load_levels<Kind>(from, codes, levels);
    for (int g = 0; g < 8; g++)
      _mm512_store_si512(to.levels[b] + 64 * g, _mm512_sub_epi8(levels[g], zero));
    _mm512_store_ps(to.scales[b], load_scales(weights, start + b));
    if (weights.shifts) _mm512_store_ps(to.shifts[b], load_shifts(weights, start + b));
    from += bytes;
  }
}

// Tiles 0 to 3: sums of 16 rows and 16 outputs; 4 and 5: rows; 6 and 7: levels, of so many blocks.
struct alignas(64) TileConfig {
  uint8_t palette = 1, start_row = 0, reserved[14] = {};
  uint16_t row_bytes[16] = {64, 64, 64, 64, 0, 0, 64, 64};
  uint8_t rows[16] = {16, 16, 16, 16, 16, 16, 0, 0};

  explicit TileConfig(size_t blocks) {
    row_bytes[4] = row_bytes[5] = static_cast<uint16_t>(blocks * kBlock);
    rows[6] = rows[7] = static_cast<uint8_t>(blocks * kBlock / 4);
  }
};

// The numbers of tiles are part of the instructions.
#define RAKIT_MULTIPLY_TILES(sum, x_tile, levels_tile, x, levels) \
  do {                                                            \
    _tile_zero(sum);                                              \
    _tile_loadd(x_tile, x, kBlock);                               \
    _tile_loadd(levels_tile, levels, 64);                         \
    _tile_dpbssd(sum, x_tile, levels_tile);                       \
  } while (0)

struct Block {
  __m512 scale;
  const float* row_scales;
};

inline void add_block(__m512 (&total)[16], const int32_t* sums, const Block& block) {
#pragma GCC unroll 16
  for (int r = 0; r < 16; r++)
    total[r] = _mm512_fmadd_ps(_mm512_cvtepi32_ps(_mm512_load_si512(sums + 16 * r)),
                               _mm512_mul_ps(block.scale, _mm512_set1_ps(block.row_scales[r])),
                               total[r]);
}

inline void add_shifts(__m512 (&total)[16], __m512 shift, const float* row_sums) {
#pragma GCC unroll 16
  for (int r = 0; r < 16; r++)
    total[r] = _mm512_fmadd_ps(shift, _mm512_set1_ps(row_sums[r]), total[r]);
}

// Adds the products of blocks to the outputs of a full group of rows, which the first block sets. An
// instruction that stores a tile waits for all before it, and what is loaded after it waits for it,
// so four are stored at a time, and the tiles of the next four are multiplied while these are scaled.
template <Levels, bool Shifted>
void multiply_tiles(const Product& product, size_t group, const Blocks& blocks,
                    const Unpacked& unpacked) {
  const auto& [weights, rows, out] = product;
  const size_t start = (group * weights.blocks + blocks.first) * kGroup;
  const int8_t* x = rows.levels + start * kBlock;
  const float* scales = rows.scales + start;
  const float* sums = Shifted ? rows.sums + start : nullptr;
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
  const auto x_of = [&](size_t b) { return x + b * kGroup * kBlock; };
  const auto levels_of = [&](size_t b) { return unpacked.levels[b]; };
  const auto add = [&](size_t b, const int32_t* block) __attribute__((always_inline)) {
    add_block(total, block, {_mm512_load_ps(unpacked.scales[b]), scales + b * kGroup});
    if (Shifted) add_shifts(total, _mm512_load_ps(unpacked.shifts[b]), sums + b * kGroup);
  };
  const size_t fours = blocks.count / 4 * 4;
  if (fours) {
    RAKIT_MULTIPLY_TILES(0, 4, 6, x_of(0), levels_of(0));
    RAKIT_MULTIPLY_TILES(1, 5, 7, x_of(1), levels_of(1));
    RAKIT_MULTIPLY_TILES(2, 4, 6, x_of(2), levels_of(2));
    RAKIT_MULTIPLY_TILES(3, 5, 7, x_of(3), levels_of(3));
  }
  for (size_t b = 0; b < fours; b += 4) {
    _tile_stored(0, made[0], 64);
    _tile_stored(1, made[1], 64);
    _tile_stored(2, made[2], 64);
    _tile_stored(3, made[3], 64);
    const bool is_last = b + 4 == fours;
    if (!is_last) RAKIT_MULTIPLY_TILES(0, 4, 6, x_of(b + 4), levels_of(b + 4));
    add(b, made[0]);
    if (!is_last) RAKIT_MULTIPLY_TILES(1, 5, 7, x_of(b + 5), levels_of(b + 5));
    add(b + 1, made[1]);
    if (!is_last) RAKIT_MULTIPLY_TILES(2, 4, 6, x_of(b + 6), levels_of(b + 6));
    add(b + 2, made[2]);
    if (!is_last) RAKIT_MULTIPLY_TILES(3, 5, 7, x_of(b + 7), levels_of(b + 7));
    add(b + 3, made[3]);
  }
  const size_t left = blocks.count - fours;
  if (left > 0) RAKIT_MULTIPLY_TILES(0, 4, 6, x_of(fours), levels_of(fours));
  if (left > 1) RAKIT_MULTIPLY_TILES(1, 5, 7, x_of(fours + 1), levels_of(fours + 1));
  if (left > 2) RAKIT_MULTIPLY_TILES(2, 4, 6, x_of(fours + 2), levels_of(fours + 2));
  if (left > 0) _tile_stored(0, made[0], 64);
  if (left > 1) _tile_stored(1, made[1], 64);
  if (left > 2) _tile_stored(2, made[2], 64);
  for (size_t b = 0; b < left; b++) add(fours + b, made[b]);
#pragma GCC unroll 16
  for (int r = 0; r < 16; r++)
    _mm512_mask_storeu_ps(to + r * weights.outputs, lanes, total[r]);
}
#undef RAKIT_MULTIPLY_TILES

}  // namespace
}  // namespace rakit
