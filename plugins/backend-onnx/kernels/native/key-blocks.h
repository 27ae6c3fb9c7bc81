// 64 keys and values of one head, as halves that lie one after the other (`StoredBlock`, for few
// queries) or as floats whose keys are columns (`PackedBlock`, for so many that packing pays). Both add
// up the products of a query and a key lane by lane, and then the lanes as a tree, so that a score has
// the same bits in either. Included by each file that is compiled for some instructions, with `kLanes`
// floats in a register and `floats_of`.
#pragma once
#include <algorithm>
#include <cstring>

#include "attention.h"
#include "lanes.h"

namespace rakit {
namespace {

constexpr size_t kVectors = kKeyBlock / kLanes;

constexpr size_t padded(size_t size) { return (size + kLanes - 1) / kLanes * kLanes; }

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

// Brings a row into the second level of caches: the first is too small for a block of some heads.
inline void read_ahead(const uint16_t* row, size_t size) {
  constexpr size_t line = 64 / sizeof(uint16_t);
  for (size_t i = 0; i < size; i += line) __builtin_prefetch(row + i, 0, 2);
}

struct StoredBlock {
  static size_t floats(size_t size) { return kKeyBlock * size; }

  size_t first = 0, count = 0;     // positions
  size_t size;
  const uint16_t* keys = nullptr;  // [64, size]
  const uint16_t* values = nullptr;
  uint16_t* copies;                // [2, 64, size]

  StoredBlock(const Source& source, float* memory)
      : size(source.a.size), copies(reinterpret_cast<uint16_t*>(memory)) {}

  // Takes the block where it lies in the cache, or a copy where some of it is new.
  void load(const Source& source, size_t from, size_t positions) {
    first = from;
    count = positions;
    const bool cached = first + count <= source.past && count == kKeyBlock;
    keys = cached ? source.key(first) : copies;
    values = cached ? source.value(first) : copies + kKeyBlock * size;
    if (cached) return;
    for (size_t i = 0; i < count; i++) {
      memcpy(copies + i * size, source.key(first + i), size * sizeof *copies);
      memcpy(copies + (kKeyBlock + i) * size, source.value(first + i), size * sizeof *copies);
    }
  }

  Floats value(size_t i, size_t from) const { return floats_of(values + i * size + from); }
  // What may lie beyond the cache is not read, only asked for.
  void read_next_keys(size_t i) const { read_ahead(keys + (kKeyBlock + i) * size, size); }
  void read_next_values(size_t i) const { read_ahead(values + (kKeyBlock + i) * size, size); }
};

// Loads a row's part from `from` on; what is beyond its end is 0.
inline Floats load_part(const uint16_t* row, size_t from, size_t size) {
  if (from + kLanes <= size) return floats_of(row + from);
  uint16_t part[kLanes] = {};
  memcpy(part, row + from, (size - from) * sizeof(uint16_t));
  return floats_of(part);
}

// Exchanges the lanes of `a` that have the bit `Bit` in their index with those of `b` that do not.
template <size_t Bit>
inline void exchange(Floats& a, Floats& b) {
  Ints low;
  for (size_t i = 0; i < kLanes; i++) low[i] = static_cast<int32_t>(i & Bit ? kLanes + i - Bit : i);
  const Floats first = __builtin_shuffle(a, b, low);
  b = __builtin_shuffle(a, b, low + static_cast<int32_t>(Bit));
  a = first;
}

// Rows become columns: each step exchanges a bit of the row's index and of the lane's.
template <size_t Bit = kLanes / 2>
inline void transpose(Floats (&rows)[kLanes]) {
  if constexpr (Bit > 0) {
#pragma GCC unroll 16
    for (size_t i = 0; i < kLanes; i++)
      if (!(i & Bit)) exchange<Bit>(rows[i], rows[i + Bit]);
    transpose<Bit / 2>(rows);
  }
}

struct PackedBlock {
  static size_t floats(size_t size) {
    return StoredBlock::floats(padded(size)) + 2 * kKeyBlock * padded(size);
  }

  StoredBlock stored;
  size_t first = 0, count = 0;
  size_t width;   // the size, padded
  float* keys;    // [lanes, width / lanes, 64]: the columns that a lane adds up are neighbours
  float* values;  // [64, width]

  PackedBlock(const Source& source, float* memory)
      : stored(source, memory),
        width(padded(source.a.size)),
        keys(memory + StoredBlock::floats(width)),
        values(keys + kKeyBlock * width) {}

  void load(const Source& source, size_t from, size_t positions) {
    stored.load(source, from, positions);
    first = from;
    count = positions;
    for (size_t i = 0; i < count; i += kLanes)
      for (size_t d = 0; d < width; d += kLanes) pack_keys(i, d);
    for (size_t i = 0; i < count; i++)
      for (size_t d = 0; d < width; d += kLanes)
        store(values + i * width + d, load_part(stored.values + i * stored.size, d, stored.size));
  }

  // Rows beyond the last key have any numbers; their scores are masked.
  void pack_keys(size_t i, size_t d) {
    Floats rows[kLanes];
#pragma GCC unroll 16
    for (size_t r = 0; r < kLanes; r++)
      rows[r] = load_part(stored.keys + (i + r) * stored.size, d, stored.size);
    transpose(rows);
    float* to = keys + d / kLanes * kKeyBlock + i;
#pragma GCC unroll 16
    for (size_t r = 0; r < kLanes; r++) store(to + r * (width / kLanes) * kKeyBlock, rows[r]);
  }

  Floats value(size_t i, size_t from) const { return rakit::load(values + i * width + from); }
  // So many queries take longer than memory.
  void read_next_values(size_t) const {}
};

// Vectors of scores or sums that each of `count` queries keeps in registers at once. Together they take
// at most half of these, as keys or values and the queries' factors need some, too.
constexpr size_t in_registers(size_t count) {
  constexpr size_t registers = kLanes == 16 ? 32 : 16;
  return std::min(kVectors, registers / 2 / count);
}

template <size_t Count>
using Scores = Floats[Count][kVectors];

// Every `Stride`th lane from `lane` on: both halves of them, and their sum.
template <size_t Count, size_t Vectors, size_t Stride>
inline void add_lanes(const float* const (&queries)[Count], const float* keys, size_t size,
                      size_t lane, Floats (&sums)[Count][Vectors]) {
  if constexpr (Stride == kLanes) {
    for (auto& of_query : sums)
      for (Floats& sum : of_query) sum = Floats{};
    keys += lane * (padded(size) / kLanes) * kKeyBlock;
    for (size_t d = lane; d < size; d += kLanes, keys += kKeyBlock)
      for (size_t v = 0; v < Vectors; v++) {
        const Floats key = load(keys + v * kLanes);
        for (size_t q = 0; q < Count; q++) sums[q][v] = fused(key, all(queries[q][d]), sums[q][v]);
      }
  } else {
    Floats others[Count][Vectors];
    add_lanes<Count, Vectors, 2 * Stride>(queries, keys, size, lane, sums);
    add_lanes<Count, Vectors, 2 * Stride>(queries, keys, size, lane + Stride, others);
    for (size_t q = 0; q < Count; q++)
      for (size_t v = 0; v < Vectors; v++) sums[q][v] += others[q][v];
  }
}

template <size_t Count>
void score(const float* const (&queries)[Count], const PackedBlock& block, size_t size,
           Scores<Count>& scores) {
  // with more, the tree's sums don't stay in registers; with one, AVX2 waits for the queries' loads
  constexpr size_t step = 2;
  for (size_t v = 0; v < kVectors; v += step) {
    Floats sums[Count][step];
    add_lanes<Count, step, 1>(queries, block.keys + v * kLanes, size, 0, sums);
    for (size_t q = 0; q < Count; q++)
      for (size_t i = 0; i < step; i++) scores[q][v + i] = sums[q][i];
  }
}

// Adds neighbouring groups of `Half` lanes, those of two registers into one. Groups of 4 and more are
// then in the registers' order, smaller ones within each four lanes.
template <size_t Half>
inline Floats halved(Floats a, Floats b) {
  constexpr size_t span = Half >= 4 ? kLanes : 4, groups = span / (2 * Half);
  Ints low;
  for (size_t i = 0; i < kLanes; i++) {
    const size_t group = i % span / Half;
    low[i] = static_cast<int32_t>(i / span * span + group % groups * 2 * Half + i % Half +
                                  group / groups * kLanes);
  }
  return __builtin_shuffle(a, b, low) + __builtin_shuffle(a, b, low + static_cast<int32_t>(Half));
}

// The products with the rows 0, 4, 8 ..., each added up to four lanes.
template <size_t Count>
inline void multiply_rows(const float* const (&queries)[Count], const uint16_t* keys, size_t size,
                          Floats (&sums)[Count]) {
  constexpr size_t rows = kLanes / 4;
  Floats products[rows][Count] = {};
  for (size_t d = 0; d < size; d += kLanes) {
    Floats key[rows];
    for (size_t r = 0; r < rows; r++) key[r] = floats_of(keys + 4 * r * size + d);
    for (size_t q = 0; q < Count; q++) {
      const Floats query = load(queries[q] + d);
      for (size_t r = 0; r < rows; r++) products[r][q] = fused(key[r], query, products[r][q]);
    }
  }
  for (size_t q = 0; q < Count; q++)
    if constexpr (rows == 2) sums[q] = halved<4>(products[0][q], products[1][q]);
    else
      sums[q] = halved<4>(halved<8>(products[0][q], products[1][q]),
                          halved<8>(products[2][q], products[3][q]));
}

// `size` is a multiple of the lanes.
template <size_t Count>
void score(const float* const (&queries)[Count], const StoredBlock& block, size_t size,
           Scores<Count>& scores) {
  for (size_t v = 0; v < kVectors; v++) {
    const size_t first = v * kLanes;
    for (size_t i = 0; i < kLanes; i++) block.read_next_keys(first + i);
    Floats sums[4][Count];
    for (size_t i = 0; i < 4; i++)
      multiply_rows<Count>(queries, block.keys + (first + i) * size, size, sums[i]);
    for (size_t q = 0; q < Count; q++)
      scores[q][v] = halved<1>(halved<2>(sums[0][q], sums[1][q]), halved<2>(sums[2][q], sums[3][q]));
  }
}

}  // namespace
}  // namespace rakit
