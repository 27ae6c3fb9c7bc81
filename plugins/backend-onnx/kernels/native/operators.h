#pragma once

namespace rakit {

struct OrtCustomOp;

// The operators of the domain "rakit".
const OrtCustomOp* block_matmul();
const OrtCustomOp* cached_attention();
const OrtCustomOp* gated_unit();

}  // namespace rakit
