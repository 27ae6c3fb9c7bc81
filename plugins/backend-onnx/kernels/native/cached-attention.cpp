// CachedAttention: queries [B, S, heads * size], keys and values [B, S, kv_heads * size], the past of
// each, [B or 1, kv_heads, capacity, size], and its lengths [B]: [B, S, heads * size].
// Attributes: kv_heads, window (absent: none), scale.
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

void attend_all(const Work& work, size_t) {
  for (size_t part = 0; part < work.attention.parts(); part++) attend(work, part);
}

class CachedAttention {
 public:
  static constexpr const char* kName = "CachedAttention";
  static constexpr int kTypes[] = {kFloat, kFloat, kFloat, kFloat, kFloat, kInt64};
  static constexpr size_t kRequired = 6;

  explicit CachedAttention(const Attributes& attributes)
      : kv_heads_(attributes.integer("kv_heads")),
        window_(attributes.integer("window")),
        scale_(attributes.number("scale")) {}

  void compute(Call& call) const {
    Attention attention = attention_of(call);
    if (!call.ok() || attention.rows * attention.steps == 0) return;
    attention.steps_each = steps_each(attention);
    const Work work{*kernels(), attention};
    if (is_small(attention)) attend_all(work, 0);
    else call.parallel(attend, attention.parts(), work);
  }

 private:
  Attention attention_of(Call& call) const {
    const Tensor queries = call.input(0), keys = call.input(1), values = call.input(2);
    const Tensor past_keys = call.input(3), past_values = call.input(4), lengths = call.input(5);
    const size_t rows = queries.size(0), steps = queries.size(1), size = past_keys.size(3);
    call.expect(queries.axes == 3 && past_keys.axes == 4 && kv_heads_ > 0 && size > 0 &&
                    past_keys.size(1) == kv_heads_ && queries.last() % (kv_heads_ * size) == 0 &&
                    keys.elements == rows * steps * kv_heads_ * size &&
                    values.elements == keys.elements &&
                    past_values.elements == past_keys.elements && lengths.elements == rows &&
                    (past_keys.size(0) == rows || past_keys.size(0) == 1),
                "CachedAttention: the inputs' sizes do not fit together");
    for (size_t row = 0; call.ok() && row < rows; row++) {
      const int64_t length = lengths.as<int64_t>()[row];
      call.expect(length >= 0 && length <= past_keys.sizes[2],
                  "CachedAttention: a length is beyond the past");
    }
    float* out = call.output(queries.sizes, queries.axes);
    if (!call.ok()) return {};
    return {rows,
            steps,
            queries.last() / size,
            kv_heads_,
            size,
            scale_,
            window_,
            queries.as<float>(),
            keys.as<float>(),
            values.as<float>(),
            past_keys.as<float>(),
            past_values.as<float>(),
            past_keys.size(0),
            past_keys.size(2),
            lengths.as<int64_t>(),
            out,
            1};
  }

  size_t kv_heads_, window_;
  float scale_;
};

}  // namespace

const OrtCustomOp* cached_attention() {
  static const Description<CachedAttention> description;
  return &description;
}

}  // namespace rakit
