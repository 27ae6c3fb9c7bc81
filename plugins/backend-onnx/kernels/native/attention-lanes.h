// Attention with an online softmax (Milakov and Gimelshein, arXiv 1805.02867; Dao et al., arXiv
// 2205.14135). Blocks of keys begin at multiples of 64 of the position, so that a query's numbers are
// the same wherever its chunk begins and whichever queries stand beside it. Included by each file
// that is compiled for some instructions, with `kLanes` floats in a register, `floats_of` and
// `write_halves`.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstring>

#include "attention.h"
#include "lanes.h"

namespace rakit {
namespace {

constexpr size_t kVectors = kKeyBlock / kLanes;

inline size_t padded(size_t size) { return (size + kLanes - 1) / kLanes * kLanes; }

// Of what is at most 0; what is far below becomes 0.
inline Floats exponential(Floats x) {
  const Floats least = all(-87.0f);
  const Ints tiny = x < least;
  const Floats bounded = tiny ? least : x;
  const Ints n = __builtin_convertvector(bounded * kLog2E - 0.5f, Ints);
  const Floats sum = exponential_over_power(bounded, __builtin_convertvector(n, Floats));
  const Floats power = reinterpret_cast<Floats>((n + 127) << 23);
  return tiny ? Floats{} : sum * power;
}

inline Floats interleaved(Floats a, Floats b, size_t half) {
  Ints order;
  for (size_t i = 0; i < kLanes; i++)
    order[i] = static_cast<int32_t>((half * kLanes + i) / 2 + (i % 2 ? kLanes : 0));
  return __builtin_shuffle(a, b, order);
}

// Rows become columns: each of log2(lanes) perfect shuffles moves one bit of the index.
inline void transpose(Floats (&rows)[kLanes]) {
  for (size_t stage = 1; stage < kLanes; stage *= 2) {
    Floats next[kLanes];
    for (size_t i = 0; i < kLanes / 2; i++) {
      next[2 * i] = interleaved(rows[i], rows[i + kLanes / 2], 0);
      next[2 * i + 1] = interleaved(rows[i], rows[i + kLanes / 2], 1);
    }
    memcpy(rows, next, sizeof next);
  }
}

// The keys and values of one head of a sequence.
struct Source {
  const Attention& a;
  size_t row, head;
  size_t past;

  const uint16_t* at(const uint16_t* cached, const uint16_t* fresh, size_t position) const {
    if (position >= past)
      return fresh + ((row * a.steps + position - past) * a.kv_heads + head) * a.size;
    const auto bank_row = static_cast<size_t>(a.past_rows[row]);
    return cached + ((bank_row * a.kv_heads + head) * a.capacity + position) * a.size;
  }
  const uint16_t* key(size_t position) const { return at(a.past_keys, a.keys, position); }
  const uint16_t* value(size_t position) const { return at(a.past_values, a.values, position); }
};

// Loads a row's part from `from` on; what is beyond its end is 0.
inline Floats load_part(const uint16_t* row, size_t from, size_t size) {
  if (from + kLanes <= size) return floats_of(row + from);
  uint16_t part[kLanes] = {};
  memcpy(part, row + from, (size - from) * sizeof(uint16_t));
  return floats_of(part);
}

struct KeyBlock {
  size_t first, count;  // positions
  float* keys;          // [size, 64], transposed
  float* values;        // [64, padded size]
};

// Rows that memory is read ahead by; what lies beyond the cache is not read.
constexpr size_t kRowsAhead = 16;

inline void read_ahead(const uint16_t* row, size_t size) {
  for (size_t i = 0; i < size; i += 32) __builtin_prefetch(row + kRowsAhead * size + i);
}

void pack(const Source& source, const KeyBlock& block) {
  const size_t size = source.a.size, width = padded(size);
  for (size_t i = 0; i < block.count; i++) read_ahead(source.key(block.first + i), size);
  for (size_t lane = 0; lane < block.count; lane += kLanes)
    for (size_t from = 0; from < size; from += kLanes) {
      Floats rows[kLanes] = {};
      for (size_t i = 0; i < kLanes && lane + i < block.count; i++)
        rows[i] = load_part(source.key(block.first + lane + i), from, size);
      transpose(rows);
      for (size_t i = 0; i < kLanes && from + i < size; i++)
        store(block.keys + (from + i) * kKeyBlock + lane, rows[i]);
    }
  for (size_t i = 0; i < block.count; i++) {
    const uint16_t* value = source.value(block.first + i);
    read_ahead(value, size);
    for (size_t from = 0; from < size; from += kLanes)
      store(block.values + i * width + from, load_part(value, from, size));
  }
}

// A query and what it has seen: the largest score, the sum of weights by lane, and of weighted values.
struct Query {
  const float* query;
  size_t position;
  float most;
  Floats weights;
  float* sum;  // [padded size]
};

constexpr float kNothing = -1e30f;

inline void mask(Floats (&scores)[kVectors], const Query& query, const KeyBlock& block,
                 size_t window) {
  const size_t start = window && query.position >= window ? query.position - window + 1 : 0;
  if (block.first >= start && block.first + kKeyBlock <= query.position + 1) return;
  Ints lanes;
  for (size_t i = 0; i < kLanes; i++) lanes[i] = static_cast<int32_t>(i);
  const auto relative = [&](size_t position) {
    return all(static_cast<int32_t>(position) - static_cast<int32_t>(block.first));
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
      std::max(query.most, fold(most, [](float a, float b) { return a > b ? a : b; }));
  const float factor = exponential(all(query.most - largest))[0];
  query.most = largest;
  query.weights *= factor;
  for (size_t v = 0; v < kVectors; v++) {
    scores[v] = exponential(scores[v] - largest);
    query.weights += scores[v];
  }
  return factor;
}

// Vectors of scores or sums that each of `count` queries keeps in registers at once. Together they take
// at most half of these, as keys or values and the queries' factors need some, too.
constexpr size_t in_registers(size_t count) {
  constexpr size_t registers = kLanes == 16 ? 32 : 16;
  return std::min(kVectors, registers / 2 / count);
}

// Adds the values of a block to `Vectors` vectors of the queries' sums.
template <size_t Count, size_t Vectors>
void add_values(Query* queries, const float (&weights)[Count][kKeyBlock],
                const float (&factors)[Count], const KeyBlock& block, size_t width, size_t from) {
  Floats sums[Count][Vectors];
  for (size_t q = 0; q < Count; q++)
    for (size_t v = 0; v < Vectors; v++)
      sums[q][v] = load(queries[q].sum + from + v * kLanes) * factors[q];
  for (size_t i = 0; i < block.count; i++)
    for (size_t v = 0; v < Vectors; v++) {
      const Floats value = load(block.values + i * width + from + v * kLanes);
      for (size_t q = 0; q < Count; q++) sums[q][v] += value * weights[q][i];
    }
  for (size_t q = 0; q < Count; q++)
    for (size_t v = 0; v < Vectors; v++) store(queries[q].sum + from + v * kLanes, sums[q][v]);
}

// The same for the rest of the sums from `from` on, the last of them by fewer vectors at once.
template <size_t Count, size_t Vectors>
void add_rest(Query* queries, const float (&weights)[Count][kKeyBlock],
              const float (&factors)[Count], const KeyBlock& block, size_t width, size_t from) {
  for (; from + Vectors * kLanes <= width; from += Vectors * kLanes)
    add_values<Count, Vectors>(queries, weights, factors, block, width, from);
  if constexpr (Vectors > 1)
    add_rest<Count, Vectors / 2>(queries, weights, factors, block, width, from);
}

// Writes the products of the queries and the keys of `Vectors` vectors of a block.
template <size_t Count, size_t Vectors>
void score(const Query* queries, const KeyBlock& block, size_t size, size_t from,
           Floats (&scores)[Count][kVectors]) {
  Floats sums[Count][Vectors] = {};
  for (size_t d = 0; d < size; d++)
    for (size_t v = 0; v < Vectors; v++) {
      const Floats keys = load(block.keys + d * kKeyBlock + (from + v) * kLanes);
      for (size_t q = 0; q < Count; q++) sums[q][v] += keys * queries[q].query[d];
    }
  for (size_t q = 0; q < Count; q++)
    for (size_t v = 0; v < Vectors; v++) scores[q][from + v] = sums[q][v];
}

template <size_t Count>
void attend_block(const Attention& a, Query* queries, const KeyBlock& block) {
  constexpr size_t step = in_registers(Count);
  static_assert(kVectors % step == 0);
  Floats scores[Count][kVectors];
  for (size_t v = 0; v < kVectors; v += step)
    score<Count, step>(queries, block, a.size, v, scores);
  alignas(64) float weights[Count][kKeyBlock];
  float factors[Count];
  for (size_t q = 0; q < Count; q++) {
    for (size_t v = 0; v < kVectors; v++) scores[q][v] *= a.scale;
    mask(scores[q], queries[q], block, a.window);
    factors[q] = weigh(scores[q], queries[q]);
    for (size_t v = 0; v < kVectors; v++) store(weights[q] + v * kLanes, scores[q][v]);
  }
  add_rest<Count, step>(queries, weights, factors, block, padded(a.size), 0);
}

void attend_queries(const Attention& a, Query* queries, size_t count, const KeyBlock& block) {
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
  return sizeof(float) * (kKeyBlock * (a.size + width) + queries * width) +
         (sizeof(Query) + 64) * (queries + 1);
}

void attend(const Attention& a, size_t part, void* scratch) {
  const size_t row = part / (a.kv_heads * a.step_parts());
  const size_t head = part / a.step_parts() % a.kv_heads;
  const size_t first_step = part % a.step_parts() * a.steps_each;
  const size_t steps = std::min(a.steps_each, a.steps - first_step);
  const Source source{a, row, head, static_cast<size_t>(a.past_lengths[row])};
  const size_t group = a.group(), width = padded(a.size);

  auto* floats = static_cast<float*>(scratch);
  KeyBlock block{0, 0, floats, floats + kKeyBlock * a.size};
  float* sums = block.values + kKeyBlock * width;
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

  const size_t last = queries[count - 1].position, earliest = queries[0].position;
  const size_t start = a.window && earliest >= a.window ? earliest - a.window + 1 : 0;
  for (block.first = start / kKeyBlock * kKeyBlock; block.first <= last;
       block.first += kKeyBlock) {
    block.count = std::min(kKeyBlock, last + 1 - block.first);
    pack(source, block);
    // the first queries don't see the last keys of their own chunk
    size_t from = 0;
    while (queries[from].position < block.first) from++;
    attend_queries(a, queries + from, count - from, block);
  }
  for (size_t q = 0; q < count; q++) {
    const float weights = fold(queries[q].weights, [](float x, float y) { return x + y; });
    for (size_t i = 0; i < a.size; i++) a.out[place(q) + i] = queries[q].sum[i] / weights;
  }
}

}  // namespace
}  // namespace rakit
