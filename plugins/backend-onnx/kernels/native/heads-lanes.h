// Included by each file that is compiled for some instructions. Tails are padded with zeros and go
// through the same code, so that a number does not depend on its place.
#pragma once
#include "heads.h"
#include "norm-lanes.h"

namespace rakit {
namespace {

inline void rotate_head(const HeadTurn& turn, size_t position, const float* from, float* to) {
  const size_t pairs = turn.pairs;
  const float* cosines = turn.cosines + position * pairs;
  const float* sines = turn.sines + position * pairs;
  for (size_t i = 0; i < pairs; i += kLanes) {
    const size_t left = pairs - i;
    const Floats cosine = load_padded(cosines + i, left), sine = load_padded(sines + i, left);
    const Floats a = load_padded(from + i, left), b = load_padded(from + pairs + i, left);
    store_some(to + i, fused(a, cosine, -b * sine), left);
    store_some(to + pairs + i, fused(b, cosine, a * sine), left);
  }
  const size_t turned = 2 * pairs;
  if (from != to) memcpy(to + turned, from + turned, (turn.size - turned) * sizeof(float));
}

// Heads that stand one after the other; `weights` of their norm, or null.
void turn_heads(const HeadTurn& turn, size_t position, const float* weights, const float* from,
                size_t heads, float* to) {
  for (size_t head = 0; head < heads; head++, from += turn.size, to += turn.size) {
    if (weights) normalize_row(from, weights, turn.size, turn.epsilon, to);
    rotate_head(turn, position, weights ? to : from, to);
  }
}

}  // namespace
}  // namespace rakit
