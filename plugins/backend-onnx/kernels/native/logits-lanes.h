// What sampling does with the logits of a row. Included by each file that is compiled for some
// instructions, with `kLanes` floats in a register.
#pragma once
#include <cmath>

#include "lanes.h"

namespace rakit {
namespace {

typedef double Doubles __attribute__((vector_size(kLanes * 8)));

// Returns NaN where a logit is NaN or positive infinity; that of no logits is negative infinity.
inline float largest_logit(const float* logits, size_t count) {
  Floats most = all(-INFINITY);
  Ints unsound{};
  size_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    const Floats values = load(logits + i);
    unsound |= ~(values < all(INFINITY));
    most = most > values ? most : values;
  }
  float largest = fold(most, [](Floats a, Floats b) { return a > b ? a : b; });
  bool sound = fold(unsound, [](Ints a, Ints b) { return a | b; }) == 0;
  for (; i < count; i++) {
    sound &= logits[i] < INFINITY;
    largest = logits[i] > largest ? logits[i] : largest;
  }
  return sound ? largest : NAN;
}

// Sets the logits to negative infinity whose bits are 0, and those for which there are no bits: bit
// i % 32 of word i / 32. Returns the largest of the others as `largest_logit` does.
inline float largest_allowed(float* logits, size_t count, const uint32_t* words,
                             size_t word_count) {
  Ints bits;
  for (size_t lane = 0; lane < kLanes; lane++) bits[lane] = int32_t{1} << lane;
  const size_t covered = word_count < count / 32 ? word_count * 32 : count;
  Floats most = all(-INFINITY);
  Ints unsound{};
  size_t i = 0;
  for (; i + 32 <= covered; i += 32)
    for (size_t first = 0; first < 32; first += kLanes) {
      float* const at = logits + i + first;
      const Ints allowed = (all(static_cast<int32_t>(words[i / 32] >> first)) & bits) != 0;
      const Floats values = allowed ? load(at) : all(-INFINITY);
      store(at, values);
      unsound |= ~(values < all(INFINITY));
      most = most > values ? most : values;
    }
  float largest = fold(most, [](Floats a, Floats b) { return a > b ? a : b; });
  bool sound = fold(unsound, [](Ints a, Ints b) { return a | b; }) == 0;
  for (; i < count; i++) {
    if (i / 32 >= word_count || !(words[i / 32] >> i % 32 & 1)) logits[i] = -INFINITY;
    sound &= logits[i] < INFINITY;
    largest = logits[i] > largest ? logits[i] : largest;
  }
  return sound ? largest : NAN;
}

// Replaces logits by e^((logit - largest) * scale), and returns the sum.
inline double weigh_logits(float* logits, size_t count, float largest, float scale) {
  Doubles sums{};
  size_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    const Floats weights = exponential((load(logits + i) - largest) * scale);
    store(logits + i, weights);
    sums += __builtin_convertvector(weights, Doubles);
  }
  double sum = 0;
  for (size_t lane = 0; lane < kLanes; lane++) sum += sums[lane];
  store_some(logits + i, exponential((load_padded(logits + i, count - i) - largest) * scale),
             count - i);
  for (; i < count; i++) sum += logits[i];
  return sum;
}

// Returns the index at which the sum of the weights exceeds `target`; that of the last weight above 0
// where rounding leaves the sum below.
inline size_t pick_weight(const float* weights, size_t count, double target) {
  constexpr size_t block = 16 * kLanes;
  double left = target;
  size_t i = 0;
  for (; i + block <= count; i += block) {
    Doubles sums{};
    for (size_t v = 0; v < block; v += kLanes)
      sums += __builtin_convertvector(load(weights + i + v), Doubles);
    double sum = 0;
    for (size_t lane = 0; lane < kLanes; lane++) sum += sums[lane];
    if (left < sum) break;
    left -= sum;
  }
  for (; i < count; i++) {
    left -= weights[i];
    if (left < 0) return i;
  }
  while (i > 1 && !(weights[i - 1] > 0)) i--;
  return i - 1;
}

// Writes the indices of the weights that are at least `least`, in their order. Returns how many there
// are; of more than `most`, so many and one.
inline size_t list_likely(const float* weights, size_t count, float least, int32_t* indices,
                          size_t most) {
  constexpr size_t block = 4 * kLanes;
  size_t found = 0;
  const auto list = [&](size_t from, size_t end) {
    for (size_t i = from; i < end && found <= most; i++)
      if (weights[i] >= least && found++ < most) indices[found - 1] = static_cast<int32_t>(i);
  };
  size_t i = 0;
  for (; i + block <= count && found <= most; i += block) {
    Ints likely{};
    for (size_t v = 0; v < block; v += kLanes) likely |= load(weights + i + v) >= all(least);
    int64_t words[kLanes / 2], any = 0;
    memcpy(words, &likely, sizeof words);
    for (int64_t word : words) any |= word;
    if (any) list(i, i + block);
  }
  list(i, count);
  return found;
}

}  // namespace
}  // namespace rakit
