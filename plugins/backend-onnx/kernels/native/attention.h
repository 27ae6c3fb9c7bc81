// Grouped-query attention (Ainslie et al., arXiv 2305.13245) over cached and new keys and values.
#pragma once
#include <cstddef>
#include <cstdint>

namespace rakit {

constexpr size_t kKeyBlock = 64;  // keys that are scored together

struct Attention {
  size_t rows, steps;           // sequences, and new tokens of each
  size_t heads, kv_heads, size;
  float scale;
  size_t window;                // a token sees so many, itself included; 0: all
  const float* queries;         // [rows, steps, heads, size]
  const uint16_t* keys;         // halves, [rows, steps, kv_heads, size]
  const uint16_t* values;
  const uint16_t* past_keys;    // halves, [rows of the bank, kv_heads, capacity, size]
  const uint16_t* past_values;
  size_t capacity;
  const int64_t* past_lengths;  // [rows]
  const int64_t* past_rows;     // [rows], of the bank
  float* out;                   // [rows, steps, heads, size]
  size_t steps_each;            // steps of a part

  size_t group() const { return heads / kv_heads; }
  size_t step_parts() const { return (steps + steps_each - 1) / steps_each; }
  // A part has the queries of some steps of one sequence that share their keys.
  size_t parts() const { return rows * kv_heads * step_parts(); }
};

}  // namespace rakit
