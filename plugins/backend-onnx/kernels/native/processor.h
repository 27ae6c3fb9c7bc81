#pragma once
#include "attention.h"
#include "block-product.h"
#include "gated-unit.h"
#include "heads.h"

namespace rakit {

// What is written once, for registers of any width; see lane-kernels.h.
struct LaneKernels {
  // Attends from the queries of a part; see attention.h.
  void (*attend)(const Attention&, size_t part, void* scratch);
  size_t (*attention_scratch_bytes)(const Attention&);
  void (*add)(const float* a, const float* b, size_t count, float* sum);
  // RMSNorm of a row.
  void (*normalize)(const float* row, const float* weights, size_t size, float epsilon, float* to);
  // Normalizes and rotates the heads of a token; see heads.h.
  void (*turn_heads)(const HeadTurn&, size_t position, const float* weights, const float* from,
                     size_t heads, float* to);
  void (*to_halves)(const float* from, size_t count, uint16_t* to);
  // Writes the rows `first` to `end` of a gated unit.
  void (*gate)(const GatedRows&, Activation, size_t first, size_t end);
  // A tile of adapters; see low-rank-lanes.h.
  void (*lower)(const float* row, size_t columns, const float* down, float* sums);
  void (*raise)(const float* sums, const float* up, size_t stride, size_t count, float* to);
  // Of sampling; see logits-lanes.h.
  float (*largest_logit)(const float* logits, size_t count);
  float (*largest_allowed)(float* logits, size_t count, const uint32_t* words, size_t word_count);
  double (*weigh_logits)(float* logits, size_t count, float largest, float scale);
  size_t (*pick_weight)(const float* weights, size_t count, double target);
  size_t (*list_likely)(const float* weights, size_t count, float least, int32_t* indices,
                        size_t most);
};

// What one kind of processor does. A row's numbers are the same whatever stands beside it, as the
// sums of a block are integers and blocks are added in their order.
struct Kernels : LaneKernels {
  const char* name;
  // Quantizes a row, `x [columns]`.
  void (*quantize)(const float* x, const Weights&, const Rows&, size_t row);
  // Writes the outputs of the panels `from` to `to`. `scratch` has `scratch_bytes`.
  void (*multiply)(const Product&, size_t from, size_t to, void* scratch);
  size_t scratch_bytes;
  // A range of panels is a multiple of so many where the rows fill a group.
  size_t panels_together;
};

extern const Kernels kAvx2;
extern const Kernels kAvx512;
extern const Kernels kAmx;

// The fastest kernels of this processor; null where it has none of their instructions.
const Kernels* kernels();

}  // namespace rakit
