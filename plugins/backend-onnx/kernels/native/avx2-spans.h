// Products of levels whose scales are for sub-blocks: the sums of a span are whole numbers.
#pragma once
#include "avx2-panels.h"

namespace rakit {
namespace {

// The counts of two sub-blocks for half a panel, side by side in 16 bits.
inline __m256i load_counts(const Steps& first, const Steps& second, size_t lane) {
  return _mm256_blend_epi16(widened(first.counts + lane),
                            _mm256_slli_epi32(widened(second.counts + lane), 16), 0xaa);
}

inline __m256i broadcast(const int16_t* two) {
  int32_t value;
  memcpy(&value, two, sizeof value);
  return _mm256_set1_epi32(value);
}

// A sub-block's products, of four columns each, times its steps, which `counts` has twice. In 2 and 3 bits
// all of an output fit into 16 bits, in 6 four of at most 63 times 127.
template <Levels Kind>
inline __m256i times_steps(const __m256i (&products)[4], __m256i counts) {
  const __m256i left = _mm256_add_epi16(products[0], products[1]);
  const __m256i right = _mm256_add_epi16(products[2], products[3]);
  if constexpr (Kind != Levels::kSixes)
    return _mm256_madd_epi16(_mm256_add_epi16(left, right), counts);
  return _mm256_add_epi32(_mm256_madd_epi16(left, counts), _mm256_madd_epi16(right, counts));
}

// Adds a block's products for `Count` rows, times its steps.
template <Levels Kind, int Count>
inline void add_block(const uint8_t* levels, const int8_t* x, const Steps (&steps)[2],
                      __m256i (&sums)[Count][2]) {
  Fours w[8];
  load_levels<Kind>(levels, _mm256_setzero_si256(), w);
  for (int sub = 0; sub < 2; sub++) {
    const __m256i counts[2] = {load_counts(steps[sub], steps[sub], 0),
                               load_counts(steps[sub], steps[sub], kLanes)};
#pragma GCC unroll 8
    for (int r = 0; r < Count; r++) {
      const int8_t* own = x + r * 2 * kBlock + sub * kBlock / 2;
      const __m256i fours[4] = {broadcast(own), broadcast(own + 4), broadcast(own + 8),
                                broadcast(own + 12)};
#pragma GCC unroll 2
      for (int half = 0; half < 2; half++) {
        __m256i products[4];
#pragma GCC unroll 4
        for (int g = 0; g < 4; g++)
          products[g] = _mm256_maddubs_epi16(w[4 * sub + g][half], fours[g]);
        sums[r][half] = _mm256_add_epi32(sums[r][half], times_steps<Kind>(products, counts[half]));
      }
    }
  }
}

// The sums of the rows' levels in the sub-blocks from `at` on, times the steps of scales or of shifts.
template <int Count>
inline void sum_levels(const Weights& weights, size_t at, bool of_shifts, const int16_t* sub_sums,
                       __m256i (&sums)[Count][2]) {
  for (auto& row_sums : sums) row_sums[0] = row_sums[1] = _mm256_setzero_si256();
  for (size_t sub = 0; sub < kSpanSubs; sub += 2)
    for (int half = 0; half < 2; half++) {
      const __m256i counts =
          load_counts(weights.sub_steps(at + sub, of_shifts),
                      weights.sub_steps(at + sub + 1, of_shifts), half * kLanes);
#pragma GCC unroll 8
      for (int r = 0; r < Count; r++)
        sums[r][half] = _mm256_add_epi32(
            sums[r][half], _mm256_madd_epi16(counts, broadcast(sub_sums + r * kSpanSubs + sub)));
    }
}

inline Lanes units_of(const Steps& steps) {
  return {floats_of(steps.units), floats_of(steps.units + kLanes)};
}

// As multiply_rows, for levels with sub-blocks.
template <Levels Kind, int Count>
void multiply_span_rows(const Product& product, size_t panel, size_t group, size_t first) {
  const auto& [weights, rows, out] = product;
  constexpr size_t bytes = block_bytes(Kind);
  const size_t spans = weights.blocks / kSpan, stride = rows.in_group(group);
  const uint8_t* levels = weights.levels + panel * weights.blocks * bytes;
  const size_t start = group * kGroup * weights.blocks, span_start = start / kSpan + first;
  const int8_t* x = rows.levels + start * kBlock + first * 2 * kBlock;
  const float* scales = rows.scales + span_start;
  const int16_t* sub_sums = rows.sub_sums + span_start * kSpanSubs;
  const __m256i zero = _mm256_set1_epi32(weights.zero);
  Lanes total[Count];
  for (auto& row_total : total) row_total = {_mm256_setzero_ps(), _mm256_setzero_ps()};
  for (size_t s = 0; s < spans; s++) {
    const size_t at = (panel * spans + s) * kSpanSubs;
    __m256i sums[Count][2], level_sums[Count][2];
    for (auto& row_sums : sums) row_sums[0] = row_sums[1] = _mm256_setzero_si256();
    for (size_t b = 0; b < kSpan; b++, levels += bytes) {
      read_ahead(levels, bytes);
      add_block<Kind, Count>(
          levels, x + b % 2 * kBlock,
          {weights.sub_steps(at + 2 * b, false), weights.sub_steps(at + 2 * b + 1, false)}, sums);
      if (b % 2) x += stride * 2 * kBlock;
    }
    if (weights.zero) {
      sum_levels(weights, at, false, sub_sums, level_sums);
      for (int r = 0; r < Count; r++)
        for (int half = 0; half < 2; half++)
          sums[r][half] = _mm256_sub_epi32(sums[r][half],
                                           _mm256_mullo_epi32(level_sums[r][half], zero));
    }
    const Lanes unit = units_of(weights.sub_steps(at, false));
    for (int r = 0; r < Count; r++) total[r] = plus_scaled(total[r], sums[r], unit, scales[r]);
    if (weights.shifts) {
      sum_levels(weights, at, true, sub_sums, level_sums);
      const Lanes shift_unit = units_of(weights.sub_steps(at, true));
      for (int r = 0; r < Count; r++)
        total[r] = plus_scaled(total[r], level_sums[r], shift_unit, scales[r]);
    }
    scales += stride;
    sub_sums += stride * kSpanSubs;
  }
  store_rows(product, panel, group * kGroup + first, total);
}

// As quantize_blocks, with a scale for each span.
inline void quantize_spans(const float* x, const Weights& weights, const Rows& rows, size_t row) {
  const size_t group = row / kGroup, count = rows.in_group(group), own = row % kGroup;
  const size_t start = group * kGroup * weights.blocks;
  for (size_t s = 0; s < weights.blocks / kSpan; s++, x += kSpan * kBlock) {
    __m256i most8 = _mm256_setzero_si256();
    for (size_t i = 0; i < kSpan * kBlock; i += kLanes)
      most8 = _mm256_max_epu32(most8, magnitudes(_mm256_loadu_ps(x + i)));
    const float most = largest(most8);
    const __m256 steps = _mm256_set1_ps(level_factor(most));
    const size_t at = start / kSpan + s * count + own;
    rows.scales[at] = level_scale(most);
    for (size_t sub = 0; sub < kSpanSubs; sub++) {
      __m256i whole[2];
      for (int i = 0; i < 2; i++)
        whole[i] = _mm256_cvtps_epi32(
            _mm256_mul_ps(_mm256_loadu_ps(x + 16 * sub + kLanes * i), steps));
      rows.sub_sums[at * kSpanSubs + sub] =
          static_cast<int16_t>(sum_of(_mm256_add_epi32(whole[0], whole[1])));
      // packs go by halves of a register
      const __m256i words = _mm256_permute4x64_epi64(_mm256_packs_epi32(whole[0], whole[1]), 0xd8);
      const size_t pair = s * kSpan / 2 + sub / 4;
      int8_t* levels = rows.levels + start * kBlock + (pair * count + own) * 2 * kBlock;
      _mm_storeu_si128(reinterpret_cast<__m128i*>(levels + sub % 4 * 16),
                       _mm_packs_epi16(_mm256_castsi256_si128(words),
                                       _mm256_extracti128_si256(words, 1)));
    }
  }
}

}  // namespace
}  // namespace rakit
