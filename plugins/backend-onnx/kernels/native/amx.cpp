// Groups of 16 rows by the tiles of AMX (Intel Architecture Instruction Set Extensions Programming
// Reference, TDPBSSD), few rows by AVX-512, with the same numbers.
#include "avx512-panels.h"

namespace rakit {
namespace {

constexpr size_t kUnpacked = kPanel * kBlock;
// Unpacking a panel for tiles takes as long as multiplying 16 rows by it.
constexpr size_t kLeastForTiles = 2 * kGroup;

// Levels less `zero`, a block of 512 bytes as a tile takes it: rows of 4 columns of 16 outputs.
template <int Bits>
void unpack_panel(const Weights& weights, size_t panel, int8_t* to) {
  const uint8_t* from = weights.levels + panel * weights.blocks * weights.block_bytes();
  const __m512i zero = _mm512_set1_epi8(static_cast<char>(weights.zero));
  for (size_t b = 0; b < weights.blocks; b++) {
    __m512i levels[8];
    for (size_t line = 0; line < weights.block_bytes(); line += 64)
      _mm_prefetch(reinterpret_cast<const char*>(from + kAhead + line), _MM_HINT_T0);
    load_levels<Bits>(from, levels);
    for (int g = 0; g < 8; g++)
      _mm512_store_si512(to + 64 * g, _mm512_sub_epi8(levels[g], zero));
    from += weights.block_bytes();
    to += kUnpacked;
  }
}

// Tiles 0 and 1: sums of 16 rows and 16 outputs; 2 and 3: rows; 4 and 5: levels. Blocks take turns, so
// that the sums of one are read while the other's are made.
struct alignas(64) TileConfig {
  uint8_t palette = 1, start_row = 0, reserved[14] = {};
  uint16_t row_bytes[16] = {64, 64, 32, 32, 64, 64};
  uint8_t rows[16] = {16, 16, 16, 16, 8, 8};
};

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

template <bool Shifted>
void multiply_tiles(const Product& product, size_t panel, size_t group, const int8_t* unpacked) {
  const auto& [weights, rows, out] = product;
  const size_t blocks = weights.blocks, start = group * kGroup * blocks;
  const int8_t* x = rows.levels + start * kBlock;
  const float* scales = rows.scales + start;
  const float* sums = Shifted ? rows.sums + start : nullptr;
  alignas(64) int32_t even[256], odd[256];
  __m512 total[16];
  for (int r = 0; r < 16; r++) total[r] = _mm512_setzero_ps();
  const auto make_even = [&](size_t b) __attribute__((always_inline)) {
    _tile_zero(0);
    _tile_loadd(2, x + b * kGroup * kBlock, kBlock);
    _tile_loadd(4, unpacked + b * kUnpacked, 64);
    _tile_dpbssd(0, 2, 4);
  };
  const auto make_odd = [&](size_t b) __attribute__((always_inline)) {
    _tile_zero(1);
    _tile_loadd(3, x + b * kGroup * kBlock, kBlock);
    _tile_loadd(5, unpacked + b * kUnpacked, 64);
    _tile_dpbssd(1, 3, 5);
  };
  const auto add = [&](size_t b, const int32_t* block) __attribute__((always_inline)) {
    const size_t at = panel * blocks + b;
    add_block(total, block, {load_scales(weights, weights.scales, at), scales + b * kGroup});
    if (Shifted)
      add_shifts(total, load_scales(weights, weights.shifts, at), sums + b * kGroup);
  };
  make_even(0);
  _tile_stored(0, even, 64);
  for (size_t b = 0; b < blocks; b += 2) {
    if (b + 1 < blocks) make_odd(b + 1);
    add(b, even);
    if (b + 1 >= blocks) break;
    _tile_stored(1, odd, 64);
    if (b + 2 < blocks) make_even(b + 2);
    add(b + 1, odd);
    if (b + 2 < blocks) _tile_stored(0, even, 64);
  }
  float* to = out + group * kGroup * weights.outputs + panel * kPanel;
  for (int r = 0; r < 16; r++)
    _mm512_mask_storeu_ps(to + r * weights.outputs, lanes_of(weights, panel), total[r]);
}

template <int Bits>
void multiply_panel(const Product& product, size_t panel, int8_t* unpacked) {
  const size_t full = product.rows.count / kGroup;
  unpack_panel<Bits>(product.weights, panel, unpacked);
  for (size_t group = 0; group < full; group++)
    if (product.weights.shifts) multiply_tiles<true>(product, panel, group, unpacked);
    else multiply_tiles<false>(product, panel, group, unpacked);
  if (product.rows.count % kGroup) multiply_group<Bits>(product, panel, full);
}

template <int Bits>
void multiply_bits(const Product& product, size_t from, size_t to, int8_t* unpacked) {
  if (product.rows.count < kLeastForTiles) return multiply_panels<Bits>(product, from, to);
  // other libraries set tiles up anew where they find others
  alignas(64) static const TileConfig config;
  _tile_loadconfig(&config);
  for (size_t panel = from; panel < to; panel++) multiply_panel<Bits>(product, panel, unpacked);
  _tile_release();
}

void multiply(const Product& product, size_t from, size_t to, void* scratch) {
  auto* unpacked = static_cast<int8_t*>(scratch);
  if (product.weights.bits == 4) multiply_bits<4>(product, from, to, unpacked);
  else multiply_bits<8>(product, from, to, unpacked);
}

}  // namespace

const Kernels kAmx{kLaneKernels, "amx", quantize_row, multiply,
                   [](const Weights& weights) { return weights.blocks * kUnpacked; }};

}  // namespace rakit
