// CachedAttention: queries [B, S, heads * size], keys and values [B, S, kv_heads * size], a bank of
// the past of some layers as halves, [2 * layers, rows, kv_heads, capacity, size], keys before values,
// and the pasts' lengths and their rows of the bank, [B] each.
// Returns what the queries attend to, [B, S, heads * size], and the new keys and values as halves,
// [2, B, S, kv_heads * size], which are what the queries see, too.
// Attributes: kv_heads, window (absent: none), scale, layer (of those of the bank).
#include <algorithm>

#include "call.h"
#include "operators.h"
#include "processor.h"

namespace rakit {
namespace {

thread_local Scratch scratch;

struct Work {
  const Kernels& kernels;
  const Attention& attention;
};

void attend(const Work& work, size_t part) {
  work.kernels.attend(work.attention, part,
                      scratch.of(work.kernels.attention_scratch_bytes(work.attention)));
}

// Steps of a part: all of them, or so few that there are parts for some threads.
size_t steps_each(const Attention& attention) {
  constexpr size_t parts = 8, least = 8;
  const size_t sequences = attention.rows * attention.kv_heads;
  const size_t splits = std::max<size_t>(1, parts / sequences);
  const size_t each = (attention.steps + splits - 1) / splits;
  return std::min(attention.steps, std::max(each, least));
}

// Where waking a thread costs more than its part of the work.
bool is_small(const Attention& attention) {
  size_t keys = 0;
  for (size_t row = 0; row < attention.rows; row++)
    keys += static_cast<size_t>(attention.past_lengths[row]) + attention.steps;
  return keys * attention.kv_heads * (4 + attention.steps * attention.group()) < 6000;
}

class CachedAttention {
 public:
  static constexpr const char* kName = "CachedAttention";
  static constexpr int kTypes[] = {kFloat, kFloat, kFloat, kUint16, kInt64, kInt64};
  static constexpr size_t kRequired = 6;
  static constexpr int kResults[] = {kFloat, kUint16};

  explicit CachedAttention(const Attributes& attributes)
      : kv_heads_(attributes.integer("kv_heads")),
        window_(attributes.integer("window")),
        layer_(attributes.integer("layer")),
        scale_(attributes.number("scale")) {}

  void compute(Call& call) const {
    Attention attention = attention_of(call);
    if (!call.ok() || attention.rows * attention.steps == 0) return;
    attention.steps_each = steps_each(attention);
    const Work work{*kernels(), attention};
    const size_t parts = attention.parts();
    if (!is_small(attention)) return call.parallel(attend, parts, work);
    for (size_t part = 0; part < parts; part++) attend(work, part);
  }

 private:
  Attention attention_of(Call& call) const {
    const Tensor queries = call.input(0), keys = call.input(1), values = call.input(2);
    const Tensor bank = call.input(3), lengths = call.input(4), past_rows = call.input(5);
    const size_t rows = queries.size(0), steps = queries.size(1), size = bank.size(4);
    const size_t width = kv_heads_ * size;
    call.expect(queries.axes == 3 && bank.axes == 5 && width > 0 && bank.size(2) == kv_heads_ &&
                    2 * layer_ + 1 < bank.size(0) && queries.last() % width == 0 &&
                    keys.elements == rows * steps * width && values.elements == keys.elements &&
                    lengths.elements == rows && past_rows.elements == rows,
                "CachedAttention: the inputs' sizes do not fit together");
    for (size_t row = 0; call.ok() && row < rows; row++) {
      const int64_t length = lengths.as<int64_t>()[row], bank_row = past_rows.as<int64_t>()[row];
      call.expect(length >= 0 && length <= bank.sizes[3] && bank_row >= 0 &&
                      bank_row < bank.sizes[1],
                  "CachedAttention: a past is beyond its bank");
    }
    auto* out = call.output<float>(0, queries.sizes, queries.axes);
    const int64_t fresh_sizes[] = {2, queries.sizes[0], queries.sizes[1],
                                   static_cast<int64_t>(width)};
    auto* fresh = call.output<uint16_t>(1, fresh_sizes, 4);
    if (!call.ok()) return {};
    kernels()->to_halves(keys.as<float>(), keys.elements, fresh);
    kernels()->to_halves(values.as<float>(), values.elements, fresh + keys.elements);
    const size_t array = bank.elements / bank.size(0);
    const auto* past = bank.as<uint16_t>() + 2 * layer_ * array;
    Attention attention{};
    attention.rows = rows;
    attention.steps = attention.steps_each = steps;
    attention.heads = queries.last() / size;
    attention.kv_heads = kv_heads_;
    attention.size = size;
    attention.scale = scale_;
    attention.window = window_;
    attention.queries = queries.as<float>();
    attention.keys = fresh;
    attention.values = fresh + keys.elements;
    attention.past_keys = past;
    attention.past_values = past + array;
    attention.capacity = bank.size(3);
    attention.past_lengths = lengths.as<int64_t>();
    attention.past_rows = past_rows.as<int64_t>();
    attention.out = out;
    return attention;
  }

  size_t kv_heads_, window_, layer_;
  float scale_;
};

}  // namespace

const OrtCustomOp* cached_attention() {
  static const Description<CachedAttention> description;
  return &description;
}

}  // namespace rakit
