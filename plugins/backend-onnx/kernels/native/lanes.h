// Floats in the lanes of a register, by the compiler's vectors. Included by each file that is compiled
// for some instructions, with `kLanes` floats in a register.
#pragma once
#include <immintrin.h>

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace rakit {
namespace {

typedef float Floats __attribute__((vector_size(kLanes * 4)));
typedef int32_t Ints __attribute__((vector_size(kLanes * 4)));

inline Floats load(const float* from) {
  Floats values;
  memcpy(&values, from, sizeof values);
  return values;
}
inline void store(float* to, Floats values) { memcpy(to, &values, sizeof values); }
inline Floats all(float value) { return value - Floats{}; }
inline Ints all(int32_t value) { return value - Ints{}; }

// a * b + c, rounded once. Compilers must not make these of products and sums (-ffp-contract=off), as
// they do so in one copy of a function and not in another, and numbers would depend on which one ran.
inline Floats fused(Floats a, Floats b, Floats c) {
#ifdef __AVX512F__
  return reinterpret_cast<Floats>(_mm512_fmadd_ps(
      reinterpret_cast<__m512>(a), reinterpret_cast<__m512>(b), reinterpret_cast<__m512>(c)));
#else
  return reinterpret_cast<Floats>(_mm256_fmadd_ps(
      reinterpret_cast<__m256>(a), reinterpret_cast<__m256>(b), reinterpret_cast<__m256>(c)));
#endif
}

// So many values, and zeros in what is left of the register.
inline Floats load_padded(const float* from, size_t count) {
  if (count >= kLanes) return load(from);
  float part[kLanes] = {};
  memcpy(part, from, count * sizeof(float));
  return load(part);
}

// The first of them, at most `count`.
inline void store_some(float* to, Floats values, size_t count) {
  memcpy(to, &values, (count < kLanes ? count : kLanes) * sizeof(float));
}

// Combines all lanes into one: halves, quarters and so on, each with the one behind it.
template <size_t Half = kLanes / 2, typename Vector, typename Fold>
inline auto fold(Vector values, Fold combine) {
  if constexpr (Half == 0) return values[0];
  else {
    Ints behind;
    for (size_t i = 0; i < kLanes; i++) behind[i] = static_cast<int32_t>((i + Half) % kLanes);
    return fold<Half / 2>(combine(values, __builtin_shuffle(values, behind)), combine);
  }
}

constexpr float kLog2E = 1.44269504f;

// e^x over 2^whole, of the integer next to x / ln(2): the Taylor series of what is left, at most
// ln(2)/2. Within 2 units of the last place.
inline Floats exponential_over_power(Floats x, Floats whole) {
  const Floats r = fused(whole, all(2.12194440e-4f), fused(whole, all(-0.693359375f), x));
  Floats sum = all(1.0f / 5040);
  for (float term : {1.0f / 720, 1.0f / 120, 1.0f / 24, 1.0f / 6, 0.5f, 1.0f, 1.0f})
    sum = fused(sum, r, all(term));
  return sum;
}

// Of what is at most 0; what is far below becomes 0.
inline Floats exponential(Floats x) {
  const Floats least = all(-87.0f);
  const Ints tiny = x < least;
  const Floats bounded = tiny ? least : x;
  const Ints n = __builtin_convertvector(fused(bounded, all(kLog2E), all(-0.5f)), Ints);
  const Floats sum = exponential_over_power(bounded, __builtin_convertvector(n, Floats));
  const Floats power = reinterpret_cast<Floats>((n + 127) << 23);
  return tiny ? Floats{} : sum * power;
}

}  // namespace
}  // namespace rakit
