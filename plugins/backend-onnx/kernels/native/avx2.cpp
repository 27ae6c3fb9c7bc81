// A panel of 16 outputs in the lanes of two registers, by the products of bytes of AVX2
// (VPMADDUBSW), whose sums of two stay within 16 bits here.
#include <immintrin.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "processor.h"

namespace rakit {
constexpr size_t kLanes = 8;
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

inline Lanes load_scales(const Weights& weights, const void* scales, size_t block) {
  const size_t at = block * kPanel;
  if (weights.halves) {
    const auto* halves = static_cast<const uint16_t*>(scales) + at;
    return {floats_of(halves), floats_of(halves + kLanes)};
  }
  const float* floats = static_cast<const float*>(scales) + at;
  return {_mm256_loadu_ps(floats), _mm256_loadu_ps(floats + 8)};
}

inline __m256i load_bytes(const uint8_t* bytes) {
  return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(bytes));
}

inline __m256i broadcast(const int8_t* four) {
  int32_t value;
  memcpy(&value, four, 4);
  return _mm256_set1_epi32(value);
}

// Sums of a block for 8 outputs. A level of 4 bits times 127 eight times and twice is at most 30,480.
inline __m256i block_sums4(const uint8_t* levels, const int8_t* x) {
  const __m256i low = _mm256_set1_epi8(15);
  __m256i sums = _mm256_setzero_si256();
  for (int g = 0; g < 4; g++) {
    const __m256i pairs = load_bytes(levels + 64 * g);
    const __m256i first = _mm256_and_si256(pairs, low);
    const __m256i second = _mm256_and_si256(_mm256_srli_epi16(pairs, 4), low);
    sums = _mm256_add_epi16(sums, _mm256_maddubs_epi16(first, broadcast(x + 4 * g)));
    sums = _mm256_add_epi16(sums, _mm256_maddubs_epi16(second, broadcast(x + 16 + 4 * g)));
  }
  return _mm256_madd_epi16(sums, _mm256_set1_epi16(1));
}

// Levels of 8 bits are signed first: two products of at most 128 times 127 are at most 32,512.
inline __m256i block_sums8(const uint8_t* levels, const int8_t* x) {
  const __m256i zero = _mm256_set1_epi8(static_cast<char>(128));
  const __m256i ones = _mm256_set1_epi16(1);
  __m256i sums = _mm256_setzero_si256();
  for (int g = 0; g < 8; g++) {
    const __m256i weights = _mm256_xor_si256(load_bytes(levels + 64 * g), zero);
    const __m256i products = _mm256_maddubs_epi16(
        _mm256_abs_epi8(weights), _mm256_sign_epi8(broadcast(x + 4 * g), weights));
    sums = _mm256_add_epi32(sums, _mm256_madd_epi16(products, ones));
  }
  return sums;
}

inline __m256 plus(__m256 total, __m256i sums, __m256 scale, float row_scale) {
  return _mm256_fmadd_ps(_mm256_cvtepi32_ps(sums),
                         _mm256_mul_ps(scale, _mm256_set1_ps(row_scale)), total);
}

template <int Bits>
void multiply_row(const Product& product, size_t panel, size_t group, size_t row) {
  const auto& [weights, rows, out] = product;
  const size_t stride = rows.in_group(group);
  const uint8_t* levels = weights.levels + panel * weights.blocks * weights.block_bytes();
  Lanes total{_mm256_setzero_ps(), _mm256_setzero_ps()};
  for (size_t b = 0; b < weights.blocks; b++, levels += weights.block_bytes()) {
    const size_t at = group * kGroup * weights.blocks + b * stride + row;
    const int8_t* x = rows.levels + at * kBlock;
    for (size_t line = 0; line < weights.block_bytes(); line += 64)
      _mm_prefetch(reinterpret_cast<const char*>(levels + kAhead + line), _MM_HINT_T0);
    const __m256i start = _mm256_set1_epi32(Bits == 4 ? rows.starts[at] : 0);
    const auto sums = Bits == 4 ? block_sums4 : block_sums8;
    const Lanes scale = load_scales(weights, weights.scales, panel * weights.blocks + b);
    total.low = plus(total.low, _mm256_add_epi32(start, sums(levels, x)), scale.low,
                     rows.scales[at]);
    total.high = plus(total.high, _mm256_add_epi32(start, sums(levels + 32, x)), scale.high,
                      rows.scales[at]);
    if (!weights.shifts) continue;
    const Lanes shift = load_scales(weights, weights.shifts, panel * weights.blocks + b);
    const __m256 sum = _mm256_set1_ps(rows.sums[at]);
    total.low = _mm256_fmadd_ps(shift.low, sum, total.low);
    total.high = _mm256_fmadd_ps(shift.high, sum, total.high);
  }
  float values[kPanel];
  _mm256_storeu_ps(values, total.low);
  _mm256_storeu_ps(values + 8, total.high);
  const size_t count = std::min(kPanel, weights.outputs - panel * kPanel);
  memcpy(out + (group * kGroup + row) * weights.outputs + panel * kPanel, values,
         count * sizeof(float));
}

void multiply(const Product& product, size_t from, size_t to, void*) {
  const auto run = product.weights.bits == 4 ? multiply_row<4> : multiply_row<8>;
  for (size_t panel = from; panel < to; panel++)
    for (size_t row = 0; row < product.rows.count; row++)
      run(product, panel, row / kGroup, row % kGroup);
}

void quantize_row(const float* x, const Weights& weights, const Rows& rows, size_t row) {
  const size_t group = row / kGroup, count = rows.in_group(group), columns = weights.columns;
  for (size_t b = 0; b < weights.blocks; b++) {
    const float* from = x + b * kBlock;
    const size_t values = std::min(kBlock, columns - b * kBlock);
    float most = 0;
    for (size_t i = 0; i < values; i++) most = std::max(most, std::fabs(from[i]));
    const float steps = most > 0 ? 127 / most : 0;
    const size_t at = group * kGroup * weights.blocks + b * count + row % kGroup;
    int8_t* levels = rows.levels + at * kBlock;
    int32_t sum = 0;
    for (size_t i = 0; i < kBlock; i++) {
      levels[i] = static_cast<int8_t>(i < values ? std::nearbyintf(from[i] * steps) : 0);
      sum += levels[i];
    }
    rows.scales[at] = most / 127;
    rows.starts[at] = -weights.zero * sum;
    if (rows.sums) rows.sums[at] = most / 127 * static_cast<float>(sum);
  }
}

}  // namespace

const Kernels kAvx2{kLaneKernels, "avx2", quantize_row, multiply,
                    [](const Weights&) -> size_t { return 0; }};

}  // namespace rakit
