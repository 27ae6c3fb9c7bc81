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
  const float* keys;            // [rows, steps, kv_heads, size]
  const float* values;
  const float* past_keys;       // [rows or 1, kv_heads, capacity, size]
  const float* past_values;
  size_t past_rows, capacity;
  const int64_t* past_lengths;  // [rows]
  float* out;                   // [rows, steps, heads, size]
  size_t steps_each;            // steps of a part

  size_t group() const { return heads / kv_heads; }
  size_t step_parts() const { return (steps + steps_each - 1) / steps_each; }
  // A part has the queries of some steps of one sequence that share their keys.
  size_t parts() const { return rows * kv_heads * step_parts(); }
};

}  // namespace rakit
