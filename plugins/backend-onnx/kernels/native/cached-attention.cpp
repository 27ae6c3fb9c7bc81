// CachedAttention: what a layer's new tokens attend to, [B, S, heads * size], and their keys and
// values as halves, [2, B, S, kv_heads * size], which are what the queries see, too.
// Inputs: products of the layer's input, [B, S, columns] each, whose columns are, one after the other,
// queries, keys and values: one product or two or three, none of which ends within one of these;
// a bank of the past of some layers as halves, [2 * layers, rows, kv_heads, capacity, size], keys
// before values; the pasts' lengths and their rows of the bank, [B] each; where heads are rotated, the
// positions of the tokens, [B, S], and cosines and sines, [positions, pairs]; where heads are
// normalized, the weights of queries and of keys, [size] each.
// Attributes: kv_heads, window (absent: none), scale, layer (of those of the bank), epsilon.
#include <algorithm>

#include "node-call.h"
#include "operators.h"
#include "processor.h"

namespace rakit {
namespace {

thread_local Scratch scratch, query_scratch;

// Where each token has its queries, keys or values.
struct Part {
  const float* first = nullptr;
  size_t stride = 0;
};

struct Parts {
  Part queries, keys, values;
};

struct Turning {
  HeadTurn turn;
  const float *query_weights, *key_weights;  // null: not normalized
  const int64_t* positions;                  // [rows * steps]; null: not rotated
};

struct Work {
  const Kernels& kernels;
  const Attention& attention;
  const Parts& parts;
  const Turning& turning;
  float* queries;
  uint16_t *keys, *values;
};

constexpr size_t kTokensEach = 16;

void turn_token(const Work& work, size_t token, float* keys) {
  const auto& [kernels, a, parts, turning, queries, fresh_keys, fresh_values] = work;
  const size_t width = a.kv_heads * a.size;
  const auto position =
      turning.positions ? static_cast<size_t>(turning.positions[token]) : size_t{0};
  kernels.turn_heads(turning.turn, position, turning.query_weights,
                     parts.queries.first + token * parts.queries.stride, a.heads,
                     queries + token * a.heads * a.size);
  kernels.turn_heads(turning.turn, position, turning.key_weights,
                     parts.keys.first + token * parts.keys.stride, a.kv_heads, keys);
  kernels.to_halves(keys, width, fresh_keys + token * width);
  kernels.to_halves(parts.values.first + token * parts.values.stride, width,
                    fresh_values + token * width);
}

void turn(const Work& work, size_t part) {
  const auto& a = work.attention;
  auto* keys = reinterpret_cast<float*>(scratch.of(a.kv_heads * a.size * sizeof(float)));
  const size_t end = std::min((part + 1) * kTokensEach, a.rows * a.steps);
  for (size_t token = part * kTokensEach; token < end; token++) turn_token(work, token, keys);
}

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
  return keys * attention.kv_heads * (4 + attention.steps * attention.group()) < 1000;
}

class CachedAttention : public Operator {
 public:
  static constexpr const char* kName = "CachedAttention";
  static constexpr int kTypes[] = {kFloat, kUint16, kInt64, kInt64, kFloat, kFloat,
                                   kInt64, kFloat,  kFloat, kFloat, kFloat};
  static constexpr size_t kRequired = 4;
  static constexpr int kResults[] = {kFloat, kUint16};
  static constexpr size_t kRequiredResults = 2;

  explicit CachedAttention(const Attributes& attributes)
      : kv_heads_(attributes.integer("kv_heads")),
        window_(attributes.integer("window")),
        layer_(attributes.integer("layer")),
        scale_(attributes.number("scale")),
        epsilon_(attributes.number("epsilon")) {}

  int type_of(size_t input) const override { return input_type(kTypes, input); }

  void compute(Call& call) const override {
    Attention attention{};
    attention.kv_heads = kv_heads_;
    attention.scale = scale_;
    attention.window = window_;
    const Tensor bank = call.input(1);
    set_past(call, bank, attention);
    const Parts parts = parts_of(call, attention);
    const Turning turning = turning_of(call, attention);
    set_places(call, bank, attention);
    auto* keys = set_outputs(call, attention);
    const size_t tokens = attention.rows * attention.steps;
    if (!call.ok() || tokens == 0) return;
    auto* queries = reinterpret_cast<float*>(
        query_scratch.of(tokens * attention.heads * attention.size * sizeof(float)));
    auto* values = keys + tokens * attention.kv_heads * attention.size;
    attention.queries = queries;
    attention.keys = keys;
    attention.values = values;
    attention.steps_each = steps_each(attention);
    const Work work{*kernels(), attention, parts, turning, queries, keys, values};
    call.parallel(turn, (tokens + kTokensEach - 1) / kTokensEach, work);
    if (!is_small(attention)) return call.parallel(attend, attention.parts(), work);
    for (size_t part = 0; part < attention.parts(); part++) attend(work, part);
  }

 private:
  // Sets what is known of the past: `size`, and its arrays of this layer.
  void set_past(Call& call, const Tensor& bank, Attention& attention) const {
    call.expect(bank.axes == 5 && kv_heads_ > 0 && bank.size(2) == kv_heads_ && bank.size(4) > 0 &&
                    2 * layer_ + 1 < bank.size(0),
                "CachedAttention: the bank has another size");
    if (!call.ok()) return;
    const size_t array = bank.elements / bank.size(0);
    attention.size = bank.size(4);
    attention.past_keys = bank.as<uint16_t>() + 2 * layer_ * array;
    attention.past_values = attention.past_keys + array;
    attention.capacity = bank.size(3);
  }

  // Sets where each sequence has its past.
  void set_places(Call& call, const Tensor& bank, Attention& attention) const {
    const Tensor lengths = call.input(2), past_rows = call.input(3);
    call.expect(lengths.elements == attention.rows && past_rows.elements == attention.rows,
                "CachedAttention: the inputs' sizes do not fit together");
    if (!call.ok()) return;
    attention.past_lengths = lengths.as<int64_t>();
    attention.past_rows = past_rows.as<int64_t>();
    for (size_t row = 0; row < attention.rows; row++)
      call.expect(attention.past_lengths[row] >= 0 &&
                      attention.past_lengths[row] <= bank.sizes[3] &&
                      attention.past_rows[row] >= 0 && attention.past_rows[row] < bank.sizes[1],
                  "CachedAttention: a past is beyond its bank");
  }

  // Returns the new keys; the new values follow.
  uint16_t* set_outputs(Call& call, Attention& attention) const {
    const auto rows = static_cast<int64_t>(attention.rows);
    const auto steps = static_cast<int64_t>(attention.steps);
    const int64_t sizes[] = {rows, steps,
                             static_cast<int64_t>(attention.heads * attention.size)};
    const int64_t fresh_sizes[] = {2, rows, steps,
                                   static_cast<int64_t>(kv_heads_ * attention.size)};
    attention.out = call.output<float>(0, sizes, 3);
    return call.output<uint16_t>(1, fresh_sizes, 4);
  }

  // Finds queries, keys and values in the products; sets `rows`, `steps` and `heads`.
  Parts parts_of(Call& call, Attention& attention) const {
    const Tensor products[] = {call.input(0), call.input(4), call.input(5)};
    const auto& first = products[0];
    const size_t width = kv_heads_ * attention.size;
    size_t columns = 0;
    if (!call.ok()) return {};
    for (const auto& product : products) {
      columns += product.last();
      call.expect(!product.data || (product.axes == 3 && product.sizes[0] == first.sizes[0] &&
                                    product.sizes[1] == first.sizes[1]),
                  "CachedAttention: the products' sizes do not fit together");
    }
    call.expect(columns > 2 * width && (columns - 2 * width) % width == 0,
                "CachedAttention: the products have other columns than the heads need");
    if (!call.ok()) return {};
    attention.rows = first.size(0);
    attention.steps = first.size(1);
    attention.heads = (columns - 2 * width) / attention.size;
    const auto part = [&](size_t from, size_t count) -> Part {
      for (const auto& product : products) {
        if (from + count <= product.last()) return {product.as<float>() + from, product.last()};
        if (from < product.last()) break;
        from -= product.last();
      }
      call.expect(false, "CachedAttention: a product ends within queries, keys or values");
      return {};
    };
    const size_t query_columns = columns - 2 * width;
    return {part(0, query_columns), part(query_columns, width),
            part(query_columns + width, width)};
  }

  Turning turning_of(Call& call, const Attention& attention) const {
    if (!call.ok()) return {};
    const Tensor positions = call.input(6), cosines = call.input(7), sines = call.input(8);
    const Tensor query_weights = call.input(9), key_weights = call.input(10);
    const size_t tokens = attention.rows * attention.steps;
    const Turning turning{{attention.size, cosines.last(), epsilon_, cosines.as<float>(),
                           sines.as<float>()},
                          query_weights.as<float>(), key_weights.as<float>(),
                          positions.as<int64_t>()};
    call.expect(2 * cosines.last() <= attention.size && sines.elements == cosines.elements &&
                    !positions.data == !cosines.data &&
                    (!query_weights.data || query_weights.elements == attention.size) &&
                    (!key_weights.data || key_weights.elements == attention.size) &&
                    (!positions.data || positions.elements == tokens),
                "CachedAttention: positions or norms have another size");
    if (!call.ok() || !positions.data) return turning;
    const auto known = static_cast<int64_t>(cosines.elements / cosines.last());
    for (size_t i = 0; i < tokens; i++)
      call.expect(turning.positions[i] >= 0 && turning.positions[i] < known,
                  "CachedAttention: a position has no rotation");
    return turning;
  }

  size_t kv_heads_, window_, layer_;
  float scale_, epsilon_;
};

}  // namespace

const OrtCustomOp* cached_attention() {
  static const Description<CachedAttention> description;
  return &description;
}

std::unique_ptr<Operator> make_cached_attention(const Attributes& attributes) {
  return std::make_unique<CachedAttention>(attributes);
}

}  // namespace rakit
