// What becomes of the heads of a token's queries and keys before they attend: they are normalized
// where the model does that, then rotated (RoPE: Su et al., arXiv 2104.09864), each dimension with
// the one that stands `pairs` behind it.
#pragma once
#include <cstddef>

namespace rakit {

struct HeadTurn {
  size_t size, pairs;      // dimensions of a head; what is behind 2 * pairs is not rotated
  float epsilon;
  const float* cosines;    // [positions, pairs]
  const float* sines;
};

}  // namespace rakit
