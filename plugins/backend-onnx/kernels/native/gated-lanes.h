// The activations of gated units. Both are the gate times a sigmoid: of the gate itself, and of a
// polynomial, as (1 + tanh(u)) / 2 is the sigmoid of 2 u. A tail is padded with zeros and goes
// through the same code, so that a number does not depend on its place. Included by each file that
// is compiled for some instructions.
#pragma once
#include "gated-unit.h"
#include "lanes.h"

namespace rakit {
namespace {

// e^x + 1. 2 is taken out of the power, as 2^128 is no float; what is too large becomes infinite.
inline Floats exponential_plus_one(Floats x) {
  const Floats least = all(-40.0f), most = all(89.0f);  // NaN is neither less nor more
  x = x < least ? least : x;
  x = x > most ? most : x;
  constexpr float rounding = 0x1.8p23f;  // leaves the nearest integer in the low bits
  const Floats rounded = fused(x, all(kLog2E), all(rounding));
  const Floats sum = exponential_over_power(x, rounded - rounding);
  const Ints half_power = (reinterpret_cast<Ints>(rounded) + 126) << 23;
  return fused(sum + sum, reinterpret_cast<Floats>(half_power), all(1.0f));
}

template <Activation Kind>
inline Floats activated(Floats gate) {
  const Floats least = all(-200.0f);  // 0 from here on, also for what is infinite
  gate = gate < least ? least : gate;
  if constexpr (Kind == Activation::kSilu) {
    return gate / exponential_plus_one(-gate);
  } else {
    const Floats square = gate * gate;
    const Floats factor = fused(square, all(-0.0713548162726f), all(-1.59576912161f));
    return gate / exponential_plus_one(gate * factor);
  }
}

template <Activation Kind>
void gate_rows(const GatedRows& rows, size_t first, size_t end) {
  const size_t columns = rows.columns;
  for (size_t row = first; row < end; row++) {
    const float* gates = rows.x + row * 2 * columns;
    const float* ups = gates + columns;
    float* out = rows.out + row * columns;
    for (size_t from = 0; from < columns; from += kLanes) {
      const size_t left = columns - from;
      const Floats gate = load_padded(gates + from, left), up = load_padded(ups + from, left);
      store_some(out + from, activated<Kind>(gate) * up, left);
    }
  }
}

inline void gate(const GatedRows& rows, Activation kind, size_t first, size_t end) {
  if (kind == Activation::kSilu) gate_rows<Activation::kSilu>(rows, first, end);
  else gate_rows<Activation::kGelu>(rows, first, end);
}

}  // namespace
}  // namespace rakit
