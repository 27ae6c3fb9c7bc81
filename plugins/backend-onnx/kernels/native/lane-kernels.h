// Included by each file that is compiled for some instructions, with `kLanes` floats in a register,
// `floats_of` and `write_halves`.
#pragma once
#include "attention-lanes.h"
#include "gated-lanes.h"
#include "heads-lanes.h"
#include "logits-lanes.h"
#include "low-rank-lanes.h"
#include "processor.h"

namespace rakit {
namespace {

constexpr LaneKernels kLaneKernels{
    attend,          attention_scratch_bytes, add_rows,    normalize_row, turn_heads,
    to_halves,       gate,                    lower,       raise,         largest_logit,
    largest_allowed, weigh_logits,            pick_weight, list_likely};

}  // namespace
}  // namespace rakit
