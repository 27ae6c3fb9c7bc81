#pragma once
#include <memory>

namespace rakit {

struct OrtCustomOp;
class Attributes;
class Operator;

// The operators of the domain "rakit".
const OrtCustomOp* block_matmul();
const OrtCustomOp* cached_attention();
const OrtCustomOp* gated_unit();
const OrtCustomOp* chain();

// Operators of a chain.
std::unique_ptr<Operator> make_block_matmul(const Attributes&);
std::unique_ptr<Operator> make_cached_attention(const Attributes&);
std::unique_ptr<Operator> make_gated_unit(const Attributes&);

}  // namespace rakit
