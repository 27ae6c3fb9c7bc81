// Attention with an online softmax (Milakov and Gimelshein, arXiv 1805.02867; Dao et al., arXiv
// 2205.14135). Blocks of keys begin at multiples of 64 of the position, so that a query's numbers are
// the same wherever its chunk begins and whichever queries stand beside it. Included by each file
// that is compiled for some instructions, with `kLanes` floats in a register, `floats_of` and
// `write_halves`.
#pragma once
#include <cmath>

#include "key-blocks.h"

namespace rakit {
namespace {

// A query and what it has seen: the largest score, the sum of weights by lane, and of weighted values.
struct Query {
  const float* query;
  size_t position;
  float most;
  Floats weights;
  float* sum;  // [padded size]
};

constexpr float kNothing = -1e30f;

// Masks scores of the keys from position `first` on that the query does not see.
inline void mask(Floats (&scores)[kVectors], const Query& query, size_t first, size_t window) {
  const size_t start = window && query.position >= window ? query.position - window + 1 : 0;
  if (first >= start && first + kKeyBlock <= query.position + 1) return;
  Ints lanes;
  for (size_t i = 0; i < kLanes; i++) lanes[i] = static_cast<int32_t>(i);
  const auto relative = [&](size_t position) {
    return all(static_cast<int32_t>(position) - static_cast<int32_t>(first));
  };
  for (size_t v = 0; v < kVectors; v++) {
    const Ints at = lanes + static_cast<int32_t>(v * kLanes);
    scores[v] = (at <= relative(query.position)) & (at >= relative(start)) ? scores[v]
                                                                            : all(-INFINITY);
  }
}

// Turns scores into weights, and scales what was added before to the new largest score. Returns that
// factor.
inline float weigh(Floats (&scores)[kVectors], Query& query) {
  Floats most = scores[0];
  for (size_t v = 1; v < kVectors; v++) most = most > scores[v] ? most : scores[v];
  const float largest =
      std::max(query.most, fold(most, [](Floats a, Floats b) { return a > b ? a : b; }));
  const float factor = exponential(all(query.most - largest))[0];
  query.most = largest;
  query.weights *= factor;
  for (size_t v = 0; v < kVectors; v++) {
    scores[v] = exponential(scores[v] - largest);
    query.weights += scores[v];
  }
  return factor;
}

// Adds the values of a block to `Vectors` vectors of the queries' sums.
template <size_t Count, size_t Vectors, typename Block>
void add_values(Query* queries, const float (&weights)[Count][kKeyBlock],
                const float (&factors)[Count], const Block& block, size_t width, size_t from) {
  Floats sums[Count][Vectors];
  for (size_t q = 0; q < Count; q++)
    for (size_t v = 0; v < Vectors; v++)
      sums[q][v] = load(queries[q].sum + from + v * kLanes) * factors[q];
  for (size_t i = 0; i < block.count; i++) {
    if (from == 0) block.read_next_values(i);
    for (size_t v = 0; v < Vectors; v++) {
      const Floats value = block.value(i, from + v * kLanes);
      for (size_t q = 0; q < Count; q++) sums[q][v] = fused(value, all(weights[q][i]), sums[q][v]);
    }
  }
  for (size_t q = 0; q < Count; q++)
    for (size_t v = 0; v < Vectors; v++) store(queries[q].sum + from + v * kLanes, sums[q][v]);
}

// The same for the rest of the sums from `from` on, the last of them by fewer vectors at once.
template <size_t Count, size_t Vectors, typename Block>
void add_rest(Query* queries, const float (&weights)[Count][kKeyBlock],
              const float (&factors)[Count], const Block& block, size_t width, size_t from) {
  for (; from + Vectors * kLanes <= width; from += Vectors * kLanes)
    add_values<Count, Vectors>(queries, weights, factors, block, width, from);
  if constexpr (Vectors > 1)
    add_rest<Count, Vectors / 2>(queries, weights, factors, block, width, from);
}

template <size_t Count, typename Block>
void attend_block(const Attention& a, Query* queries, const Block& block) {
  const float* rows[Count];
  for (size_t q = 0; q < Count; q++) rows[q] = queries[q].query;
  Scores<Count> scores;
  score<Count>(rows, block, a.size, scores);
  alignas(64) float weights[Count][kKeyBlock];
  float factors[Count];
  for (size_t q = 0; q < Count; q++) {
    for (size_t v = 0; v < kVectors; v++) scores[q][v] *= a.scale;
    mask(scores[q], queries[q], block.first, a.window);
    factors[q] = weigh(scores[q], queries[q]);
    for (size_t v = 0; v < kVectors; v++) store(weights[q] + v * kLanes, scores[q][v]);
  }
  add_rest<Count, in_registers(Count)>(queries, weights, factors, block, padded(a.size), 0);
}

template <typename Block>
void attend_queries(const Attention& a, Query* queries, size_t count, const Block& block) {
  for (; count >= 4; count -= 4, queries += 4) attend_block<4>(a, queries, block);
  if (count == 3) attend_block<3>(a, queries, block);
  if (count == 2) attend_block<2>(a, queries, block);
  if (count == 1) attend_block<1>(a, queries, block);
}

// The nearest halves; of two, the even one.
void to_halves(const float* from, size_t count, uint16_t* to) {
  size_t i = 0;
  for (; i + kLanes <= count; i += kLanes) write_halves(load(from + i), to + i);
  if (i == count) return;
  uint16_t halves[kLanes];
  write_halves(load_padded(from + i, count - i), halves);
  memcpy(to + i, halves, (count - i) * sizeof(uint16_t));
}

size_t attention_scratch_bytes(const Attention& a) {
  const size_t queries = a.steps_each * a.group(), width = padded(a.size);
  return sizeof(float) * (PackedBlock::floats(a.size) + queries * width) +
         (sizeof(Query) + 64) * (queries + 1);
}

// So many queries take as long with keys and values as they are stored as with packed ones.
constexpr size_t kFew = 16;

template <typename Block>
void attend_source(const Source& source, Query* queries, size_t count, float* memory) {
  const Attention& a = source.a;
  const size_t last = queries[count - 1].position, earliest = queries[0].position;
  const size_t start = a.window && earliest >= a.window ? earliest - a.window + 1 : 0;
  Block block(source, memory);
  for (size_t first = start / kKeyBlock * kKeyBlock; first <= last; first += kKeyBlock) {
    block.load(source, first, std::min(kKeyBlock, last + 1 - first));
    // the first queries don't see the last keys of their own chunk
    size_t from = 0;
    while (queries[from].position < first) from++;
    attend_queries(a, queries + from, count - from, block);
  }
}

void attend(const Attention& a, size_t part, void* scratch) {
  const size_t row = part / (a.kv_heads * a.step_parts());
  const size_t head = part / a.step_parts() % a.kv_heads;
  const size_t first_step = part % a.step_parts() * a.steps_each;
  const size_t steps = std::min(a.steps_each, a.steps - first_step);
  const Source source{a, row, head, static_cast<size_t>(a.past_lengths[row])};
  const size_t group = a.group(), width = padded(a.size);

  auto* memory = static_cast<float*>(scratch);
  float* sums = memory + PackedBlock::floats(a.size);
  const size_t count = steps * group;
  memset(sums, 0, count * width * sizeof(float));
  auto* queries = reinterpret_cast<Query*>(
      (reinterpret_cast<uintptr_t>(sums + count * width) + 63) / 64 * 64);
  const auto place = [&](size_t q) {
    return ((row * a.steps + first_step + q / group) * a.heads + head * group + q % group) * a.size;
  };
  for (size_t q = 0; q < count; q++)
    queries[q] = {a.queries + place(q), source.past + first_step + q / group, kNothing, Floats{},
                  sums + q * width};
  if (count <= kFew && width == a.size) attend_source<StoredBlock>(source, queries, count, memory);
  else attend_source<PackedBlock>(source, queries, count, memory);
  for (size_t q = 0; q < count; q++) {
    const float weights = fold(queries[q].weights, [](Floats x, Floats y) { return x + y; });
    for (size_t i = 0; i < a.size; i++) a.out[place(q) + i] = queries[q].sum[i] / weights;
  }
}

}  // namespace
}  // namespace rakit
