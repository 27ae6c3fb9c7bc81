// A panel of 16 outputs in the lanes of one register, by the products of bytes of AVX-512 VNNI
// (Intel 64 and IA-32 Architectures SDM, VPDPBUSD). Included by each file that is compiled for these
// instructions: the functions are its own.
#pragma once
#include <immintrin.h>

#include <cstring>

#include "processor.h"

namespace rakit {
constexpr size_t kLanes = 16;
constexpr int kMostRows = 8;
namespace {
inline __m512 floats_of(const uint16_t* halves) {
  return _mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(halves)));
}
inline void write_halves(__m512 values, uint16_t* to) {
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), _mm512_cvtps_ph(values, 0));
}
}  // namespace
}  // namespace rakit

#include "lane-kernels.h"

namespace rakit {
namespace {

// Numbers of 8 bits as numbers of 32.
inline __m512i widened(const int8_t* counts) {
  return _mm512_cvtepi8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(counts)));
}

inline __m512 floats_of(const Steps& steps) {
  return _mm512_mul_ps(floats_of(steps.units), _mm512_cvtepi32_ps(widened(steps.counts)));
}

// The scales of a panel's block, or its shifts.
inline __m512 load(const Weights& weights, size_t block, bool of_shifts) {
  if (weights.scale_kind == Scales::kSteps) return floats_of(weights.steps(block, of_shifts));
  const void* numbers = of_shifts ? weights.shifts : weights.scales;
  const size_t at = block * kPanel;
  if (weights.scale_kind == Scales::kHalves)
    return floats_of(static_cast<const uint16_t*>(numbers) + at);
  return _mm512_loadu_ps(static_cast<const float*>(numbers) + at);
}
inline __m512 load_scales(const Weights& weights, size_t block) {
  return load(weights, block, false);
}
inline __m512 load_shifts(const Weights& weights, size_t block) {
  return load(weights, block, true);
}

// Into the second cache where there is AMX: the first of those processors waits for less at a time.
inline void read_ahead(const uint8_t* levels, size_t bytes) {
#ifdef __AMX_INT8__
  constexpr auto to = _MM_HINT_T1;
#else
  constexpr auto to = _MM_HINT_T0;
#endif
  for (size_t line = 0; line < bytes; line += 64)
    _mm_prefetch(reinterpret_cast<const char*>(levels + kAhead + line), to);
}

// Two bits of each level.
inline void load_pairs(const uint8_t* halves, __m512i (&levels)[8]) {
  const __m512i low = _mm512_set1_epi8(3);
  for (int half = 0; half < 2; half++) {
    const __m512i pairs = _mm512_loadu_si512(halves + 64 * half);
    __m512i* four = levels + 4 * half;
    four[0] = _mm512_and_si512(pairs, low);
    four[1] = _mm512_and_si512(_mm512_srli_epi16(pairs, 2), low);
    four[2] = _mm512_and_si512(_mm512_srli_epi16(pairs, 4), low);
    four[3] = _mm512_and_si512(_mm512_srli_epi16(pairs, 6), low);
  }
}

// Adds 16 times such two bits.
inline void add_pairs(const uint8_t* halves, __m512i (&levels)[8]) {
  const __m512i high = _mm512_set1_epi8(48);
  const auto add = [&](__m512i& four, __m512i pairs) {
    four = _mm512_ternarylogic_epi32(four, pairs, high, 0xf8);  // four | (pairs & high)
  };
  for (int half = 0; half < 2; half++) {
    const __m512i pairs = _mm512_loadu_si512(halves + 64 * half);
    __m512i* four = levels + 4 * half;
    add(four[0], _mm512_slli_epi16(pairs, 4));
    add(four[1], _mm512_slli_epi16(pairs, 2));
    add(four[2], pairs);
    add(four[3], _mm512_srli_epi16(pairs, 2));
  }
}

// Adds `value` where a level's bit is 1.
inline void add_ones(const uint8_t* bits, char value, __m512i (&levels)[8]) {
  for (int g = 0; g < 8; g++) {
    uint64_t ones;
    memcpy(&ones, bits + 8 * g, sizeof ones);
    levels[g] = _mm512_mask_add_epi8(levels[g], ones, levels[g], _mm512_set1_epi8(value));
  }
}

// The levels of the columns 4 g to 4 g + 3 of a block, for each of the 16 outputs.
template <Levels Kind>
inline void load_levels(const uint8_t* block, __m512i codes, __m512i (&levels)[8]) {
  if constexpr (Kind == Levels::kBytes) {
    for (int g = 0; g < 8; g++) levels[g] = _mm512_loadu_si512(block + 64 * g);
  } else if constexpr (Kind == Levels::kTwos || Kind == Levels::kThrees) {
    load_pairs(block, levels);
    if constexpr (Kind == Levels::kThrees) add_ones(block + block_bytes(Levels::kTwos), 4, levels);
  } else {
    const __m512i low = _mm512_set1_epi8(15);
    for (int g = 0; g < 4; g++) {
      const __m512i pairs = _mm512_loadu_si512(block + 64 * g);
      levels[g] = _mm512_and_si512(pairs, low);
      levels[g + 4] = _mm512_and_si512(_mm512_srli_epi16(pairs, 4), low);
    }
    if constexpr (Kind == Levels::kCodes)
      for (auto& four : levels) four = _mm512_shuffle_epi8(codes, four);
    const uint8_t* high = block + block_bytes(Levels::kNibbles);
    if constexpr (Kind == Levels::kFives) add_ones(high, 16, levels);
    if constexpr (Kind == Levels::kSixes) add_pairs(high, levels);
  }
}

// The codes for each quarter of a register; zeros where there are none.
inline __m512i load_codes(const Weights& weights) {
  if (!weights.codes) return _mm512_setzero_si512();
  return _mm512_broadcast_i32x4(_mm_loadu_si128(reinterpret_cast<const __m128i*>(weights.codes)));
}

inline __m512i broadcast(const int8_t* four) {
  int32_t value;
  memcpy(&value, four, 4);
  return _mm512_set1_epi32(value);
}

inline __mmask16 lanes_of(const Weights& weights, size_t panel) {
  const size_t left = weights.outputs - panel * kPanel;
  return left >= kPanel ? 0xffff : static_cast<__mmask16>((1u << left) - 1);
}

// Writes the outputs of a panel of `Count` rows from `first` on.
template <int Count>
inline void store_rows(const Product& product, size_t panel, size_t first,
                       const __m512 (&totals)[Count]) {
  const size_t outputs = product.weights.outputs;
  float* to = product.out + first * outputs + panel * kPanel;
  for (int r = 0; r < Count; r++)
    _mm512_mask_storeu_ps(to + r * outputs, lanes_of(product.weights, panel), totals[r]);
}

// `Count` rows, `first` in the group, of a panel. One panel at a time also where rows are few: each
// more is another two streams for the processor to follow through memory, and costs a lonely row a
// fifth of its speed.
template <Levels Kind, int Count>
void multiply_rows(const Product& product, size_t panel, size_t group, size_t first) {
  const auto& [weights, rows, out] = product;
  const size_t blocks = weights.blocks, stride = rows.in_group(group);
  constexpr size_t bytes = block_bytes(Kind);
  const uint8_t* levels = weights.levels + panel * blocks * bytes;
  const __m512i codes = load_codes(weights);
  const size_t start = group * kGroup * blocks + first;
  const int8_t* x = rows.levels + start * kBlock;
  const float* scales = rows.scales + start;
  const int32_t* starts = rows.starts + start;
  const float* sums = weights.shifts ? rows.sums + start : nullptr;
  __m512 total[Count];
  for (auto& row_total : total) row_total = _mm512_setzero_ps();
  for (size_t b = 0; b < blocks; b++) {
    read_ahead(levels, bytes);
    __m512i w[8], sum[Count];
    load_levels<Kind>(levels, codes, w);
    for (int r = 0; r < Count; r++) sum[r] = _mm512_set1_epi32(starts[r]);
#pragma GCC unroll 8
    for (int g = 0; g < 8; g++)
#pragma GCC unroll 8
      for (int r = 0; r < Count; r++)
        sum[r] = _mm512_dpbusd_epi32(sum[r], w[g], broadcast(x + r * kBlock + 4 * g));
    const size_t at = panel * blocks + b;
    const __m512 scale = load_scales(weights, at);
#pragma GCC unroll 8
    for (int r = 0; r < Count; r++)
      total[r] = _mm512_fmadd_ps(_mm512_cvtepi32_ps(sum[r]),
                                 _mm512_mul_ps(scale, _mm512_set1_ps(scales[r])), total[r]);
    if (sums) {
      const __m512 shift = load_shifts(weights, at);
#pragma GCC unroll 8
      for (int r = 0; r < Count; r++)
        total[r] = _mm512_fmadd_ps(shift, _mm512_set1_ps(sums[r]), total[r]);
      sums += stride;
    }
    levels += bytes;
    x += stride * kBlock;
    scales += stride;
    starts += stride;
  }
  store_rows(product, panel, group * kGroup + first, total);
}

inline __m512i magnitudes(__m512 values) { return _mm512_castps_si512(_mm512_abs_ps(values)); }

inline float largest(__m512i magnitudes) {
  return magnitude_of(_mm512_reduce_max_epu32(magnitudes));
}

// Quantizes to 127 levels on each side of 0, nearest even.
inline void quantize_blocks(const float* x, const Weights& weights, const Rows& rows, size_t row) {
  const size_t group = row / kGroup, count = rows.in_group(group), columns = weights.columns;
  for (size_t b = 0; b < weights.blocks; b++) {
    const float* from = x + b * kBlock;
    const size_t left = columns - b * kBlock;
    const __mmask32 mask = left >= kBlock ? 0xffffffff : (1u << left) - 1;
    const __m512 low = _mm512_maskz_loadu_ps(static_cast<__mmask16>(mask), from);
    const __m512 high = _mm512_maskz_loadu_ps(static_cast<__mmask16>(mask >> 16), from + 16);
    const float most = largest(_mm512_max_epu32(magnitudes(low), magnitudes(high)));
    const __m512 steps = _mm512_set1_ps(level_factor(most));
    const __m512i a = _mm512_cvtps_epi32(_mm512_mul_ps(low, steps));
    const __m512i c = _mm512_cvtps_epi32(_mm512_mul_ps(high, steps));
    const int32_t sum = _mm512_reduce_add_epi32(_mm512_add_epi32(a, c));
    const size_t at = group * kGroup * weights.blocks + b * count + row % kGroup;
    auto* levels = reinterpret_cast<__m128i*>(rows.levels + at * kBlock);
    _mm_storeu_si128(levels, _mm512_cvtsepi32_epi8(a));
    _mm_storeu_si128(levels + 1, _mm512_cvtsepi32_epi8(c));
    rows.scales[at] = level_scale(most);
    rows.starts[at] = -weights.zero * sum;
    if (rows.sums) rows.sums[at] = rows.scales[at] * static_cast<float>(sum);
  }
}

}  // namespace
}  // namespace rakit
