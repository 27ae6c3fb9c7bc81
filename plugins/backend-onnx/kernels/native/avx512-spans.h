// Products of levels whose scales are for sub-blocks: the sums of a span are whole numbers.
#pragma once
#include "avx512-panels.h"

namespace rakit {
namespace {

// The counts of two sub-blocks, side by side in 16 bits.
inline __m512i load_counts(const Steps& first, const Steps& second) {
  return _mm512_mask_blend_epi16(0xaaaaaaaa, widened(first.counts),
                                 _mm512_slli_epi32(widened(second.counts), 16));
}

inline __m512i broadcast(const int16_t* two) {
  int32_t value;
  memcpy(&value, two, sizeof value);
  return _mm512_set1_epi32(value);
}

// Adds the product of a sum of whole numbers with their unit and a row's scale.
inline __m512 plus_scaled(__m512 total, __m512i sum, __m512 unit, float row_scale) {
  return _mm512_fmadd_ps(_mm512_cvtepi32_ps(sum),
                         _mm512_mul_ps(unit, _mm512_set1_ps(row_scale)), total);
}

// The sums of a sub-block's products for `Count` rows.
template <int Count>
inline void sum_sub_block(const __m512i* levels, const int8_t* x, const int32_t* starts,
                          __m512i (&sum)[Count]) {
  for (int r = 0; r < Count; r++) sum[r] = _mm512_set1_epi32(starts[r]);
#pragma GCC unroll 4
  for (int g = 0; g < 4; g++)
#pragma GCC unroll 8
    for (int r = 0; r < Count; r++)
      sum[r] = _mm512_dpbusd_epi32(sum[r], levels[g], broadcast(x + r * 2 * kBlock + 4 * g));
}

// Where rows have a block: their levels, and what their sums begin with, in its second half `stride`
// further.
struct RowsAt {
  const int8_t* x;
  const int32_t* starts;
  size_t stride;
};

// Adds a block's products, times its steps. In 2 and 3 bits their sums fit into 16 bits.
template <Levels Kind, int Count>
inline void add_block(const uint8_t* levels, const RowsAt& rows, const Steps& first,
                      const Steps& second, __m512i (&sum)[Count]) {
  __m512i w[8], left[Count], right[Count];
  load_levels<Kind>(levels, _mm512_setzero_si512(), w);
  sum_sub_block(w, rows.x, rows.starts, left);
  sum_sub_block(w + 4, rows.x + kBlock / 2, rows.starts + rows.stride, right);
  if constexpr (Kind == Levels::kSixes) {
    const __m512i left_counts = widened(first.counts), right_counts = widened(second.counts);
#pragma GCC unroll 8
    for (int r = 0; r < Count; r++) {
      const __m512i product = _mm512_mullo_epi32(left[r], left_counts);
      const __m512i other = _mm512_mullo_epi32(right[r], right_counts);
      sum[r] = _mm512_add_epi32(sum[r], _mm512_add_epi32(product, other));
    }
  } else {
    const __m512i counts = load_counts(first, second);
#pragma GCC unroll 8
    for (int r = 0; r < Count; r++)
      sum[r] = _mm512_dpwssd_epi32(
          sum[r], _mm512_mask_blend_epi16(0xaaaaaaaa, left[r], _mm512_slli_epi32(right[r], 16)),
          counts);
  }
}

// The sums of the rows' levels in the sub-blocks from `at` on, times the steps of their shifts.
template <int Count>
inline void sum_shifts(const Weights& weights, size_t at, const int16_t* sub_sums,
                       __m512i (&sum)[Count]) {
  for (auto& row_sum : sum) row_sum = _mm512_setzero_si512();
  for (size_t sub = 0; sub < kSpanSubs; sub += 2) {
    const __m512i counts =
        load_counts(weights.sub_steps(at + sub, true), weights.sub_steps(at + sub + 1, true));
#pragma GCC unroll 8
    for (int r = 0; r < Count; r++)
      sum[r] = _mm512_dpwssd_epi32(sum[r], counts, broadcast(sub_sums + r * kSpanSubs + sub));
  }
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
  const int32_t* starts = rows.starts + 2 * start + first;
  const float* scales = rows.scales + span_start;
  const int16_t* sub_sums = rows.sub_sums + span_start * kSpanSubs;
  __m512 total[Count];
  for (auto& row_total : total) row_total = _mm512_setzero_ps();
  for (size_t s = 0; s < spans; s++) {
    const size_t at = (panel * spans + s) * kSpanSubs;
    __m512i sum[Count];
    for (auto& row_sum : sum) row_sum = _mm512_setzero_si512();
    for (size_t b = 0; b < kSpan; b++, levels += bytes, starts += 2 * stride) {
      read_ahead(levels, bytes);
      add_block<Kind>(levels, {x + b % 2 * kBlock, starts, stride},
                      weights.sub_steps(at + 2 * b, false),
                      weights.sub_steps(at + 2 * b + 1, false), sum);
      if (b % 2) x += stride * 2 * kBlock;
    }
    const __m512 unit = floats_of(weights.sub_steps(at, false).units);
#pragma GCC unroll 8
    for (int r = 0; r < Count; r++) total[r] = plus_scaled(total[r], sum[r], unit, scales[r]);
    if (weights.shifts) {
      sum_shifts(weights, at, sub_sums, sum);
      const __m512 shift_unit = floats_of(weights.sub_steps(at, true).units);
      for (int r = 0; r < Count; r++)
        total[r] = plus_scaled(total[r], sum[r], shift_unit, scales[r]);
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
    __m512i most16 = _mm512_setzero_si512();
    for (size_t sub = 0; sub < kSpanSubs; sub++)
      most16 = _mm512_max_epu32(most16, magnitudes(_mm512_loadu_ps(x + 16 * sub)));
    const float most = largest(most16);
    const __m512 steps = _mm512_set1_ps(level_factor(most));
    const size_t at = start / kSpan + s * count + own;
    rows.scales[at] = level_scale(most);
    for (size_t sub = 0; sub < kSpanSubs; sub++) {
      const __m512i whole = _mm512_cvtps_epi32(_mm512_mul_ps(_mm512_loadu_ps(x + 16 * sub), steps));
      const int32_t sum = _mm512_reduce_add_epi32(whole);
      rows.starts[2 * start + (s * kSpanSubs + sub) * count + own] = -weights.zero * sum;
      rows.sub_sums[at * kSpanSubs + sub] = static_cast<int16_t>(sum);
      const size_t pair = s * kSpan / 2 + sub / 4;
      int8_t* levels = rows.levels + start * kBlock + (pair * count + own) * 2 * kBlock;
      _mm_storeu_si128(reinterpret_cast<__m128i*>(levels + sub % 4 * 16),
                       _mm512_cvtsepi32_epi8(whole));
    }
  }
}

}  // namespace
}  // namespace rakit
