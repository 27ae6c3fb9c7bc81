// A panel of 16 outputs in the lanes of two registers, by the products of bytes of AVX2
// (VPMADDUBSW), whose sums of two stay within 16 bits here.
#pragma once
#include <immintrin.h>

#include <algorithm>
#include <cstring>

#include "processor.h"

namespace rakit {
constexpr size_t kLanes = 8;
constexpr int kMostRows = 6;
namespace {
inline __m256 floats_of(const uint16_t* halves) {
  return _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(halves)));
}
inline void write_halves(__m256 values, uint16_t* to) {
  _mm_storeu_si128(reinterpret_cast<__m128i*>(to), _mm256_cvtps_ph(values, 0));
}
}  // namespace
}  // namespace rakit

#include "lane-kernels.h"

namespace rakit {
namespace {

struct Lanes {
  __m256 low, high;
};

// Eight numbers of 8 bits as numbers of 32.
inline __m256i widened(const int8_t* counts) {
  int64_t eight;
  memcpy(&eight, counts, sizeof eight);
  return _mm256_cvtepi8_epi32(_mm_cvtsi64_si128(eight));
}

inline __m256 floats_of(const Steps& steps, size_t first) {
  return _mm256_mul_ps(floats_of(steps.units + first),
                       _mm256_cvtepi32_ps(widened(steps.counts + first)));
}

inline Lanes lanes_of(const Steps& steps) { return {floats_of(steps, 0), floats_of(steps, kLanes)}; }

// The scales of a panel's block, or its shifts.
inline Lanes load(const Weights& weights, size_t block, bool of_shifts) {
  if (weights.scale_kind == Scales::kSteps) return lanes_of(weights.steps(block, of_shifts));
  const void* numbers = of_shifts ? weights.shifts : weights.scales;
  const size_t at = block * kPanel;
  if (weights.scale_kind == Scales::kHalves) {
    const auto* halves = static_cast<const uint16_t*>(numbers) + at;
    return {floats_of(halves), floats_of(halves + kLanes)};
  }
  const float* floats = static_cast<const float*>(numbers) + at;
  return {_mm256_loadu_ps(floats), _mm256_loadu_ps(floats + 8)};
}
inline Lanes load_scales(const Weights& weights, size_t block) {
  return load(weights, block, false);
}
inline Lanes load_shifts(const Weights& weights, size_t block) {
  return load(weights, block, true);
}

inline __m256i load_bytes(const uint8_t* bytes) {
  return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(bytes));
}

inline __m256i broadcast(const int8_t* four) {
  int32_t value;
  memcpy(&value, four, 4);
  return _mm256_set1_epi32(value);
}

// Changes nothing, but the compiler can't know that. Without it GCC adds the products of all columns as
// a tree at the end, and keeps them in memory until then.
inline void finish(__m256i& sum) { asm("" : "+x"(sum)); }

// The codes for each half of a register, as signed numbers; zeros where there are none.
inline __m256i load_codes(const Weights& weights) {
  if (!weights.codes) return _mm256_setzero_si256();
  const __m128i codes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(weights.codes));
  return _mm256_xor_si256(_mm256_broadcastsi128_si256(codes),
                          _mm256_set1_epi8(static_cast<char>(128)));
}

// The levels of four columns for the two halves of a panel.
typedef __m256i Fours[2];

// A byte of `value` for each of 32 bits that is 1.
inline __m256i ones_as(char value, const uint8_t* bits) {
  int32_t four;
  memcpy(&four, bits, sizeof four);
  const __m256i spread = _mm256_setr_epi64x(0, 0x0101010101010101, 0x0202020202020202,
                                            0x0303030303030303);
  const __m256i own = _mm256_set1_epi64x(static_cast<int64_t>(0x8040201008040201));
  const __m256i bytes = _mm256_shuffle_epi8(_mm256_set1_epi32(four), spread);
  const __m256i is_set = _mm256_cmpeq_epi8(_mm256_and_si256(bytes, own), own);
  return _mm256_and_si256(is_set, _mm256_set1_epi8(value));
}

// Two bits of each level: the register `half` of four of a half of a block, of which it holds them all.
inline __m256i load_pairs(const uint8_t* halves, int g, int half) {
  const __m256i pairs = load_bytes(halves + 64 * (g / 4) + 32 * half);
  return _mm256_and_si256(_mm256_srli_epi16(pairs, 2 * (g % 4)), _mm256_set1_epi8(3));
}

// The levels of the columns 4 g to 4 g + 3 of a block, those of 8 bits and codes as signed numbers.
template <Levels Kind>
inline void load_levels(const uint8_t* block, __m256i codes, Fours (&w)[8]) {
  const __m256i low = _mm256_set1_epi8(15), zero = _mm256_set1_epi8(static_cast<char>(128));
  constexpr bool is_pairs = Kind == Levels::kTwos || Kind == Levels::kThrees;
#pragma GCC unroll 16
  for (int i = 0; i < 16; i++) {
    __m256i& levels = w[i / 2][i % 2];
    if constexpr (is_pairs) {
      levels = load_pairs(block, i / 2, i % 2);
    } else if constexpr (Kind == Levels::kBytes) {
      levels = _mm256_xor_si256(load_bytes(block + 32 * i), zero);
    } else {
      const __m256i pairs = load_bytes(block + 32 * (i % 8));
      levels = _mm256_and_si256(i < 8 ? pairs : _mm256_srli_epi16(pairs, 4), low);
    }
    const uint8_t* high = block + block_bytes(is_pairs ? Levels::kTwos : Levels::kNibbles);
    if constexpr (Kind == Levels::kCodes) levels = _mm256_shuffle_epi8(codes, levels);
    if constexpr (Kind == Levels::kThrees)
      levels = _mm256_or_si256(levels, ones_as(4, high + 4 * i));
    if constexpr (Kind == Levels::kFives)
      levels = _mm256_or_si256(levels, ones_as(16, high + 4 * i));
    if constexpr (Kind == Levels::kSixes)
      levels = _mm256_or_si256(levels, _mm256_slli_epi16(load_pairs(high, i / 2, i % 2), 4));
  }
}

// Adds the products of four columns. In 4 bits a sum is of 16 products of at most 15 times 127, 30,480
// together, so it fits into 16 bits. In 5 and 8 bits, and with codes, only two do: of at most 128 times
// 127 each, 32,512.
template <Levels Kind>
inline __m256i plus_products(__m256i sum, __m256i levels, __m256i four) {
  if constexpr (Kind == Levels::kNibbles) {
    sum = _mm256_add_epi16(sum, _mm256_maddubs_epi16(levels, four));
  } else if constexpr (Kind == Levels::kFives) {
    const __m256i products = _mm256_maddubs_epi16(levels, four);
    sum = _mm256_add_epi32(sum, _mm256_madd_epi16(products, _mm256_set1_epi16(1)));
  } else {
    const __m256i products =
        _mm256_maddubs_epi16(_mm256_abs_epi8(levels), _mm256_sign_epi8(four, levels));
    sum = _mm256_add_epi32(sum, _mm256_madd_epi16(products, _mm256_set1_epi16(1)));
  }
  finish(sum);
  return sum;
}

// The sums of a block's products for `Count` rows, the first of them at `at`.
template <Levels Kind, int Count>
inline void sum_block(const uint8_t* block, __m256i codes, const Rows& rows, size_t at,
                      __m256i (&sums)[Count][2]) {
  Fours w[8];
  load_levels<Kind>(block, codes, w);
  const int8_t* x = rows.levels + at * kBlock;
  for (auto& row_sums : sums) row_sums[0] = row_sums[1] = _mm256_setzero_si256();
#pragma GCC unroll 8
  for (int g = 0; g < 8; g++)
#pragma GCC unroll 8
    for (int r = 0; r < Count; r++) {
      const __m256i four = broadcast(x + r * kBlock + 4 * g);
      sums[r][0] = plus_products<Kind>(sums[r][0], w[g][0], four);
      sums[r][1] = plus_products<Kind>(sums[r][1], w[g][1], four);
    }
  if constexpr (Kind == Levels::kBytes || Kind == Levels::kCodes) return;
  for (int r = 0; r < Count; r++)
    for (auto& sum : sums[r]) {
      if constexpr (Kind == Levels::kNibbles) sum = _mm256_madd_epi16(sum, _mm256_set1_epi16(1));
      sum = _mm256_add_epi32(sum, _mm256_set1_epi32(rows.starts[at + r]));
    }
}

inline Lanes plus_scaled(const Lanes& total, const __m256i (&sums)[2], const Lanes& scale,
                         float row_scale) {
  const __m256 factor = _mm256_set1_ps(row_scale);
  return {_mm256_fmadd_ps(_mm256_cvtepi32_ps(sums[0]), _mm256_mul_ps(scale.low, factor), total.low),
          _mm256_fmadd_ps(_mm256_cvtepi32_ps(sums[1]), _mm256_mul_ps(scale.high, factor),
                          total.high)};
}

inline Lanes plus_shifted(const Lanes& total, const Lanes& shift, float row_sum) {
  const __m256 sum = _mm256_set1_ps(row_sum);
  return {_mm256_fmadd_ps(shift.low, sum, total.low),
          _mm256_fmadd_ps(shift.high, sum, total.high)};
}

// Writes the outputs of a panel of `Count` rows from `first` on.
template <int Count>
inline void store_rows(const Product& product, size_t panel, size_t first,
                       const Lanes (&totals)[Count]) {
  const auto& weights = product.weights;
  const size_t outputs = std::min(kPanel, weights.outputs - panel * kPanel);
  float* to = product.out + first * weights.outputs + panel * kPanel;
  for (const auto& row_total : totals) {
    float values[kPanel];
    _mm256_storeu_ps(values, row_total.low);
    _mm256_storeu_ps(values + kLanes, row_total.high);
    memcpy(to, values, outputs * sizeof(float));
    to += weights.outputs;
  }
}

inline void read_ahead(const uint8_t* levels, size_t bytes) {
  for (size_t line = 0; line < bytes; line += 64)
    _mm_prefetch(reinterpret_cast<const char*>(levels + kAhead + line), _MM_HINT_T0);
}

// `Count` rows of a panel, `first` in the group.
template <Levels Kind, int Count>
void multiply_rows(const Product& product, size_t panel, size_t group, size_t first) {
  const auto& [weights, rows, out] = product;
  constexpr size_t bytes = block_bytes(Kind);
  const uint8_t* levels = weights.levels + panel * weights.blocks * bytes;
  const __m256i codes = load_codes(weights);
  const size_t stride = rows.in_group(group);
  size_t at = group * kGroup * weights.blocks + first;
  Lanes total[Count];
  for (auto& row_total : total) row_total = {_mm256_setzero_ps(), _mm256_setzero_ps()};
  for (size_t b = 0; b < weights.blocks; b++, levels += bytes, at += stride) {
    read_ahead(levels, bytes);
    __m256i sums[Count][2];
    sum_block<Kind, Count>(levels, codes, rows, at, sums);
    const size_t block = panel * weights.blocks + b;
    const Lanes scale = load_scales(weights, block);
#pragma GCC unroll 8
    for (int r = 0; r < Count; r++)
      total[r] = plus_scaled(total[r], sums[r], scale, rows.scales[at + r]);
    if (!weights.shifts) continue;
    const Lanes shift = load_shifts(weights, block);
#pragma GCC unroll 8
    for (int r = 0; r < Count; r++)
      total[r] = plus_shifted(total[r], shift, rows.sums[at + r]);
  }
  store_rows(product, panel, group * kGroup + first, total);
}

inline __m256i magnitudes(__m256 values) {
  return _mm256_and_si256(_mm256_castps_si256(values), _mm256_set1_epi32(0x7fffffff));
}

inline float largest(__m256i magnitudes) {
  __m128i most = _mm_max_epu32(_mm256_castsi256_si128(magnitudes),
                               _mm256_extracti128_si256(magnitudes, 1));
  most = _mm_max_epu32(most, _mm_unpackhi_epi64(most, most));
  most = _mm_max_epu32(most, _mm_shuffle_epi32(most, 1));
  return magnitude_of(static_cast<uint32_t>(_mm_cvtsi128_si32(most)));
}

inline int32_t sum_of(__m256i values) {
  __m128i sum = _mm_add_epi32(_mm256_castsi256_si128(values), _mm256_extracti128_si256(values, 1));
  sum = _mm_add_epi32(sum, _mm_unpackhi_epi64(sum, sum));
  return _mm_cvtsi128_si32(_mm_add_epi32(sum, _mm_shuffle_epi32(sum, 1)));
}

// Quantizes to 127 levels on each side of 0, nearest even.
inline void quantize_blocks(const float* x, const Weights& weights, const Rows& rows, size_t row) {
  const size_t group = row / kGroup, count = rows.in_group(group), columns = weights.columns;
  for (size_t b = 0; b < weights.blocks; b++) {
    const float* from = x + b * kBlock;
    const size_t left = columns - b * kBlock;
    float last[kBlock];
    if (left < kBlock) {
      memset(last, 0, sizeof last);
      memcpy(last, from, left * sizeof(float));
      from = last;
    }
    __m256 values[4];
    for (int i = 0; i < 4; i++) values[i] = _mm256_loadu_ps(from + 8 * i);
    const __m256i most8 = _mm256_max_epu32(
        _mm256_max_epu32(magnitudes(values[0]), magnitudes(values[1])),
        _mm256_max_epu32(magnitudes(values[2]), magnitudes(values[3])));
    const float most = largest(most8);
    const __m256 steps = _mm256_set1_ps(level_factor(most));
    __m256i whole[4];
    for (int i = 0; i < 4; i++) whole[i] = _mm256_cvtps_epi32(_mm256_mul_ps(values[i], steps));
    const int32_t sum = sum_of(_mm256_add_epi32(_mm256_add_epi32(whole[0], whole[1]),
                                                _mm256_add_epi32(whole[2], whole[3])));
    // packs go by halves of a register: they leave fours of each of the four registers in turn
    const __m256i bytes = _mm256_packs_epi16(_mm256_packs_epi32(whole[0], whole[1]),
                                             _mm256_packs_epi32(whole[2], whole[3]));
    const size_t at = group * kGroup * weights.blocks + b * count + row % kGroup;
    _mm256_storeu_si256(
        reinterpret_cast<__m256i*>(rows.levels + at * kBlock),
        _mm256_permutevar8x32_epi32(bytes, _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7)));
    rows.scales[at] = level_scale(most);
    rows.starts[at] = -weights.zero * sum;
    if (rows.sums) rows.sums[at] = rows.scales[at] * static_cast<float>(sum);
  }
}

}  // namespace
}  // namespace rakit
