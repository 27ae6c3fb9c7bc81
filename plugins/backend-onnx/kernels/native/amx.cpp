// Groups of 16 rows by the tiles of AMX (Intel Architecture Instruction Set Extensions Programming
// Reference, TDPBSSD), few rows by AVX-512, with the same numbers.
#include <algorithm>
#include <type_traits>

#include "amx-blocks.h"
#include "amx-spans.h"
#include "any-levels.h"

namespace rakit {
namespace {

// Unpacking a panel for tiles takes as long as multiplying 16 rows by it.
constexpr size_t kLeastForTiles = 2 * kGroup;
// Panels that take turns with a group of rows, so that it is read from the second cache once for all
// of them.
constexpr size_t kTogether = 4;

template <Levels Kind>
using UnpackedOf = std::conditional_t<has_sub_blocks(Kind), UnpackedSpans, Unpacked>;

// The panels `from` to `to`, `kTogether` at most.
template <Levels Kind, bool Shifted>
void multiply_together(const Product& product, size_t from, size_t to, UnpackedOf<Kind>* unpacked) {
  const auto& weights = product.weights;
  const size_t full = product.rows.count / kGroup;
  for (size_t first = 0; first < weights.blocks; first += kUnpackedBlocks) {
    const size_t count = std::min(kUnpackedBlocks, weights.blocks - first);
    for (size_t panel = from; panel < to; panel++)
      unpack<Kind>(weights, {panel, first, count}, unpacked[panel - from]);
    for (size_t group = 0; group < full; group++)
      for (size_t panel = from; panel < to; panel++)
        multiply_tiles<Kind, Shifted>(product, group, {panel, first, count},
                                      unpacked[panel - from]);
  }
  if (product.rows.count % kGroup)
    for (size_t panel = from; panel < to; panel++) multiply_group<Kind>(product, panel, full);
}

template <Levels Kind>
void multiply_levels(const Product& product, size_t from, size_t to, void* scratch) {
  if (product.rows.count < kLeastForTiles) return multiply_panels<Kind>(product, from, to);
  // other libraries set tiles up anew where they find others
  alignas(64) static const TileConfig config(has_sub_blocks(Kind) ? 2 : 1);
  _tile_loadconfig(&config);
  const auto run = product.weights.shifts ? multiply_together<Kind, true>
                                          : multiply_together<Kind, false>;
  for (size_t panel = from; panel < to; panel += kTogether)
    run(product, panel, std::min(panel + kTogether, to),
        static_cast<UnpackedOf<Kind>*>(scratch));
  _tile_release();
}

void multiply(const Product& product, size_t from, size_t to, void* scratch) {
  with_kind(product.weights.levels_kind(), [&](auto kind) {
    multiply_levels<decltype(kind)::value>(product, from, to, scratch);
  });
}

}  // namespace

const Kernels kAmx{kLaneKernels, "amx", quantize_row, multiply,
                   kTogether * std::max(sizeof(Unpacked), sizeof(UnpackedSpans)), kTogether};

}  // namespace rakit
