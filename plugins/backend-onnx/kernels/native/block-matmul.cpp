// BlockMatMul: x [.., K] times a matrix in blocks, transposed: [.., N].
// Inputs: x, levels, scales, and shifts where the matrix has them. Attributes: K, N, bits, zero.
#include <algorithm>

#include "call.h"
#include "operators.h"
#include "processor.h"

namespace rakit {
namespace {

thread_local Scratch row_scratch, panel_scratch;

Rows rows_in(Scratch& scratch, size_t count, const Weights& weights) {
  const size_t values = count * weights.blocks;
  char* memory = scratch.of(values * (kBlock + sizeof(float) * 3) + 3 * 64);
  const auto part = [&](size_t bytes) {
    char* start = memory;
    memory += (bytes + 63) / 64 * 64;
    return start;
  };
  return {count,
          weights.blocks,
          reinterpret_cast<int8_t*>(part(values * kBlock)),
          reinterpret_cast<float*>(part(values * sizeof(float))),
          reinterpret_cast<int32_t*>(part(values * sizeof(int32_t))),
          weights.shifts ? reinterpret_cast<float*>(memory) : nullptr};
}

struct Work {
  const Kernels& kernels;
  const float* x;
  const Product& product;
  size_t panels_each;
};

void quantize(const Work& work, size_t group) {
  const auto& [weights, rows, out] = work.product;
  work.kernels.quantize(work.x + group * kGroup * weights.columns, weights, rows, group);
}

void multiply(const Work& work, size_t part) {
  const auto& weights = work.product.weights;
  const size_t start = part * work.panels_each;
  const size_t end = std::min(start + work.panels_each, weights.panels());
  work.kernels.multiply(work.product, start, end,
                        panel_scratch.of(work.kernels.scratch_bytes(weights)));
}

// A part for a thread to take: an eighth of the panels, or what takes some 100 us.
size_t panels_each(const Weights& weights, size_t rows) {
  constexpr size_t some = 20000;
  const size_t panel_work = weights.blocks * (rows + 4);
  return std::min(std::max<size_t>(1, some / panel_work), (weights.panels() + 7) / 8);
}

class BlockMatMul {
 public:
  static constexpr const char* kName = "BlockMatMul";
  static constexpr int kTypes[] = {kFloat, kUint8, kAnyType, kAnyType};
  static constexpr size_t kRequired = 3;
  static constexpr int kResults[] = {kFloat};

  explicit BlockMatMul(const Attributes& attributes) {
    weights_.columns = attributes.integer("K");
    weights_.outputs = attributes.integer("N");
    weights_.bits = static_cast<int>(attributes.integer("bits"));
    weights_.zero = static_cast<int>(attributes.integer("zero"));
    weights_.blocks = (weights_.columns + kBlock - 1) / kBlock;
  }

  void compute(Call& call) const {
    const Weights weights = weights_of(call);
    Tensor x = call.input(0);
    call.expect(x.last() == weights.columns, "BlockMatMul: x has another number of columns");
    if (!call.ok()) return;
    const size_t rows = x.elements / weights.columns;
    x.sizes[x.axes - 1] = static_cast<int64_t>(weights.outputs);
    float* out = call.output<float>(0, x.sizes, x.axes);
    if (!call.ok() || rows == 0) return;
    const Product product{weights, rows_in(row_scratch, rows, weights), out};
    const Work work{*kernels(), x.as<float>(), product, panels_each(weights, rows)};
    call.parallel(quantize, (rows + kGroup - 1) / kGroup, work);
    call.parallel(multiply, (weights.panels() + work.panels_each - 1) / work.panels_each, work);
  }

 private:
  Weights weights_of(Call& call) const {
    Weights weights = weights_;
    const size_t blocks = weights.panels() * weights.blocks;
    const Tensor levels = call.input(1), scales = call.input(2), shifts = call.input(3);
    call.expect(blocks > 0 &&
                    (weights.bits == 4 ? weights.zero < 16
                                       : weights.bits == 8 && weights.zero == 128) &&
                    levels.elements == blocks * weights.block_bytes() &&
                    scales.elements == blocks * kPanel &&
                    (scales.type == kFloat || scales.type == kFloat16) &&
                    (!shifts.data || (shifts.elements == scales.elements &&
                                      shifts.type == scales.type)),
                "BlockMatMul: a weight has another size or type than its attributes ask for");
    weights.halves = scales.type == kFloat16;
    weights.levels = levels.as<const uint8_t>();
    weights.scales = scales.data;
    weights.shifts = shifts.data;
    return weights;
  }

  Weights weights_{};
};

}  // namespace

const OrtCustomOp* block_matmul() {
  static const Description<BlockMatMul> description;
  return &description;
}

}  // namespace rakit
