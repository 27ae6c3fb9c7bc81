// BlockMatMul: rows of K values times a matrix in blocks, transposed: [.., N].
// Inputs: x; the file of weights, as bytes; where rows are normalized before (RMSNorm), its weights,
// [K], and where something is added to x before that, an input of its size; a bias, [N]; where rows
// have adapters, those of low-rank.h of some products: [P, R / 16, K, 16], [P, R, N] and scales
// [B, .., R].
// Outputs: the product and, where something is added, that sum, [.., K].
// Attributes: K, N, bits, zero, and of the matrix in the file where its levels, scales, shifts and codes
// begin, in lines of 64 bytes (absent: none), and scale_kind, see block-product.h (0 floats, 1 halves, 2
// steps: those of shifts stand beside those of scales); epsilon of the norm, and gate, the activation of
// GatedUnit that makes a row of K values of 2 K of x (absent: none; rows are not normalized then),
// adapter_factor and adapter_index, which of the P products it is.
#include <algorithm>
#include <mutex>

#include "large-pages.h"
#include "low-rank.h"
#include "node-call.h"
#include "operators.h"
#include "processor.h"

namespace rakit {
namespace {

thread_local Scratch row_scratch, panel_scratch, adapter_scratch;

Rows rows_in(Scratch& scratch, size_t count, const Weights& weights) {
  const size_t values = count * weights.blocks;
  const bool has_subs = has_sub_blocks(weights.levels_kind());
  const size_t sums = has_subs ? 2 * values : values;
  char* memory = scratch.of(values * (kBlock + sizeof(float)) + sums * 2 * sizeof(float) + 3 * 64);
  const auto part = [&](size_t bytes) {
    char* start = memory;
    memory += (bytes + 63) / 64 * 64;
    return start;
  };
  return {count,
          weights.blocks,
          reinterpret_cast<int8_t*>(part(values * kBlock)),
          reinterpret_cast<float*>(part(values * sizeof(float))),
          reinterpret_cast<int32_t*>(part(sums * sizeof(int32_t))),
          weights.shifts && !has_subs ? reinterpret_cast<float*>(memory) : nullptr,
          has_subs ? reinterpret_cast<int16_t*>(memory) : nullptr};
}

// What a row of the product is made of.
struct Source {
  const float* x;
  size_t width;              // of a row of x
  const float* added;        // or null
  const float* norm_weights; // or null
  float epsilon;
  Activation gate;           // or 0
  float* sums;               // x + added; null where nothing is added
};

struct Work {
  const Kernels& kernels;
  const Source& source;
  const Product& product;
  const float* bias;         // or null
  const LowRank& adapters;
  size_t rows_each, panels_each;
};

// Returns the values that are multiplied, in `made` where they are not those of x.
const float* row_of(const Work& work, size_t row, float* made) {
  const auto& source = work.source;
  const size_t columns = work.product.weights.columns;
  const float* x = source.x + row * source.width;
  if (source.gate != Activation::kNone) {
    work.kernels.gate({columns, x, made}, source.gate, 0, 1);
    return made;
  }
  if (!source.norm_weights) return x;
  float* sum = source.sums ? source.sums + row * columns : nullptr;
  if (sum) work.kernels.add(x, source.added + row * columns, columns, sum);
  work.kernels.normalize(sum ? sum : x, source.norm_weights, columns, source.epsilon, made);
  return made;
}

void lower(const Work& work, size_t row, const float* values) {
  const auto& adapters = work.adapters;
  const size_t columns = work.product.weights.columns;
  for (size_t tile = 0; tile < adapters.ranks / kTile; tile++) {
    if (!adapters.is_used(row, tile)) continue;
    float* sums = adapters.inner + row * adapters.ranks + tile * kTile;
    work.kernels.lower(values, columns, adapters.down + tile * kTile * columns, sums);
    const float* scales = adapters.scales_of(row) + tile * kTile;
    for (size_t i = 0; i < kTile; i++) sums[i] *= scales[i] * adapters.factor;
  }
}

// Adds to the outputs from `first` on.
void raise(const Work& work, size_t row, size_t first, size_t count, float* to) {
  const auto& adapters = work.adapters;
  const size_t outputs = work.product.weights.outputs;
  for (size_t tile = 0; tile < adapters.ranks / kTile; tile++)
    if (adapters.is_used(row, tile))
      work.kernels.raise(adapters.inner + row * adapters.ranks + tile * kTile,
                         adapters.up + tile * kTile * outputs + first, outputs, count, to);
}

void quantize(const Work& work, size_t part) {
  const auto& [weights, rows, out] = work.product;
  auto* made = reinterpret_cast<float*>(panel_scratch.of(weights.columns * sizeof(float)));
  const size_t first = part * work.rows_each, end = std::min(first + work.rows_each, rows.count);
  for (size_t row = first; row < end; row++) {
    const float* values = row_of(work, row, made);
    work.kernels.quantize(values, weights, rows, row);
    lower(work, row, values);
  }
}

void multiply(const Work& work, size_t part) {
  const auto& weights = work.product.weights;
  const size_t start = part * work.panels_each;
  const size_t end = std::min(start + work.panels_each, weights.panels());
  work.kernels.multiply(work.product, start, end,
                        panel_scratch.of(work.kernels.scratch_bytes));
  if (!work.bias && !work.adapters.ranks) return;
  const size_t first = start * kPanel, count = std::min(end * kPanel, weights.outputs) - first;
  for (size_t row = 0; row < work.product.rows.count; row++) {
    float* to = work.product.out + row * weights.outputs + first;
    if (work.bias) work.kernels.add(to, work.bias + first, count, to);
    raise(work, row, first, count, to);
  }
}

// Groups of rows, as rows of a group share lines of the cache; so many that a thread is not woken for
// little.
size_t rows_each(const Source& source) {
  constexpr size_t some = 16384;
  const size_t group_work = kGroup * source.width * (source.gate == Activation::kNone ? 1 : 2);
  return kGroup * std::max<size_t>(1, some / group_work);
}

// A part for a thread to take: an eighth of the panels, or what takes some 100 us.
size_t panels_each(const Weights& weights, size_t rows) {
  constexpr size_t some = 20000;
  const size_t panel_work = weights.blocks * (rows + 4);
  const size_t least = rows < kGroup ? 1 : kernels()->panels_together;
  const size_t each = std::max<size_t>(1, some / panel_work / least) * least;
  return std::min(each, (weights.panels() + 7) / 8);
}

class BlockMatMul : public Operator {
 public:
  static constexpr const char* kName = "BlockMatMul";
  static constexpr int kTypes[] = {kFloat, kUint8, kFloat, kFloat, kFloat, kFloat, kFloat, kFloat};
  static constexpr size_t kRequired = 2;
  static constexpr int kResults[] = {kFloat, kFloat};
  static constexpr size_t kRequiredResults = 1;

  explicit BlockMatMul(const Attributes& attributes)
      : gate_(static_cast<Activation>(attributes.integer("gate"))),
        epsilon_(attributes.number("epsilon")),
        adapter_factor_(attributes.number("adapter_factor")),
        adapter_index_(attributes.integer("adapter_index")) {
    weights_.columns = attributes.integer("K");
    weights_.outputs = attributes.integer("N");
    weights_.bits = static_cast<int>(attributes.integer("bits"));
    weights_.zero = static_cast<int>(attributes.integer("zero"));
    weights_.blocks = (weights_.columns + kBlock - 1) / kBlock;
    weights_.scale_kind = static_cast<Scales>(attributes.integer("scale_kind"));
    levels_ = attributes.integer("levels", kMostLines);
    scales_ = attributes.integer("scales", kMostLines);
    shifts_ = attributes.integer("shifts", kMostLines);
    codes_ = attributes.integer("codes", kMostLines);
  }

  int type_of(size_t input) const override { return input_type(kTypes, input); }

  void compute(Call& call) const override {
    const Tensor file = call.input(1);
    const Weights weights = weights_of(call, file);
    Tensor x = call.input(0);
    Source source = source_of(call, x, weights.columns);
    const Tensor bias = call.input(4);
    call.expect(!bias.data || bias.elements == weights.outputs,
                "BlockMatMul: the bias has another size");
    LowRank adapters = adapters_of(call, x, weights);
    if (!call.ok()) return;
    const size_t rows = x.elements / source.width;
    int64_t& width = x.sizes[x.axes - 1];
    width = static_cast<int64_t>(weights.outputs);
    float* out = call.output<float>(0, x.sizes, x.axes);
    width = static_cast<int64_t>(weights.columns);
    if (source.added) source.sums = call.output<float>(1, x.sizes, x.axes);
    if (!call.ok() || rows == 0) return;
    std::call_once(advised_, advise_large_pages, file.data, file.elements);
    const Product product{weights, rows_in(row_scratch, rows, weights), out};
    adapters.inner = reinterpret_cast<float*>(
        adapter_scratch.of(rows * adapters.ranks * sizeof(float)));
    const Work work{*kernels(), source, product, bias.as<float>(), adapters, rows_each(source),
                    panels_each(weights, rows)};
    call.parallel(quantize, (rows + work.rows_each - 1) / work.rows_each, work);
    call.parallel(multiply, (weights.panels() + work.panels_each - 1) / work.panels_each, work);
  }

 private:
  Source source_of(Call& call, const Tensor& x, size_t columns) const {
    const Tensor norm_weights = call.input(2), added = call.input(3);
    const bool is_gated = gate_ != Activation::kNone;
    call.expect(x.last() == columns * (is_gated ? 2 : 1),
                "BlockMatMul: x has another number of columns");
    call.expect((!norm_weights.data || norm_weights.elements == columns) &&
                    (!added.data || added.elements == x.elements) &&
                    !(added.data && !norm_weights.data) && !(is_gated && norm_weights.data),
                "BlockMatMul: what is done to x before does not fit");
    return {x.as<float>(), x.last(), added.as<float>(), norm_weights.as<float>(), epsilon_, gate_,
            nullptr};
  }

  LowRank adapters_of(Call& call, const Tensor& x, const Weights& weights) const {
    const Tensor down = call.input(5), up = call.input(6), scales = call.input(7);
    const size_t ranks = scales.last();
    if (!ranks || !call.ok()) return {};
    const size_t sequences = scales.elements / ranks, rows = x.elements / x.last();
    const size_t down_size = ranks * weights.columns, up_size = ranks * weights.outputs;
    const size_t products = down.elements / down_size;
    call.expect(ranks % kTile == 0 && down.elements == products * down_size &&
                    up.elements == products * up_size && adapter_index_ < products && sequences > 0 &&
                    rows % sequences == 0 && scales.size(0) == sequences,
                "BlockMatMul: the adapters have another size");
    if (!call.ok() || rows == 0) return {};
    return {ranks,
            rows / sequences,
            adapter_factor_,
            down.as<float>() + adapter_index_ * down_size,
            up.as<float>() + adapter_index_ * up_size,
            scales.as<float>(),
            nullptr};
  }

  Weights weights_of(Call& call, const Tensor& file) const {
    Weights weights = weights_;
    const size_t blocks = weights.panels() * weights.blocks;
    const auto at = [&](size_t line, size_t bytes) {
      call.expect(line * kLine + bytes <= file.elements,
                  "BlockMatMul: a part of the matrix is beyond the file of weights");
      return file.as<const uint8_t>() + line * kLine;
    };
    const bool is_steps = weights.scale_kind == Scales::kSteps;
    const bool is_signed = weights.bits == 8 || codes_;
    const bool has_bits = weights.bits == 4 || (!codes_ && has_levels_of(weights.bits));
    weights.codes = codes_ && has_bits ? at(codes_, kCodes) : nullptr;
    const bool has_subs = has_sub_blocks(weights.levels_kind());
    call.expect(blocks > 0 && has_bits &&
                    (is_signed ? weights.zero == 128 : weights.zero < 1 << weights.bits) &&
                    weights.scale_kind <= Scales::kSteps && !(is_steps && weights.blocks % kSuper) &&
                    !(has_subs && (!is_steps || weights.columns % kBlock)),
                "BlockMatMul: the matrix has another size or kind than the kernels know");
    if (!call.ok()) return weights;
    const size_t number_bytes = weights.scale_kind == Scales::kHalves ? sizeof(uint16_t) : sizeof(float);
    const size_t record = Weights::record_bytes(shifts_ ? 2 : 1, has_subs ? kSubBlocks : kSuper);
    const size_t scale_bytes =
        is_steps ? blocks / kSuper * record : blocks * kPanel * number_bytes;
    weights.levels = at(levels_, blocks * block_bytes(weights.bits));
    weights.scales = at(scales_, scale_bytes);
    weights.shifts = shifts_ ? at(shifts_, scale_bytes) : nullptr;
    return weights;
  }

  static constexpr size_t kLine = 64, kCodes = 16;
  static constexpr int64_t kMostLines = int64_t{1} << 57;

  Weights weights_{};
  Activation gate_;
  float epsilon_, adapter_factor_;
  size_t adapter_index_;
  size_t levels_, scales_, shifts_, codes_;  // lines of the file
  mutable std::once_flag advised_;
};

}  // namespace

const OrtCustomOp* block_matmul() {
  static const Description<BlockMatMul> description;
  return &description;
}

std::unique_ptr<Operator> make_block_matmul(const Attributes& attributes) {
  return std::make_unique<BlockMatMul>(attributes);
}

}  // namespace rakit
