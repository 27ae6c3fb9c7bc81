/** Rows of a workgroup: it says the largest lower bound of them. */
export const blockRows = 256
/** The most rows that a search says. */
export const mostFound = 16_384

/**
 * Bounds of each row's product with the query: `highs` by row, and of the lower ones the largest of
 * each block. 16 invocations share a row, so that they read it together; sums of whole numbers are
 * exact, and what floats round is in the slack.
 */
export const boundsShader = `
struct Settings { rows: u32, pieces: u32, scale: f32, norm: f32, lost: f32 }
struct Column { scale: f32, error: f32, document: u32, unused: u32 }
@group(0) @binding(0) var<uniform> settings: Settings;
@group(0) @binding(1) var<storage, read> rows: array<vec4<u32>>;
@group(0) @binding(2) var<storage, read> columns: array<Column>;
@group(0) @binding(3) var<storage, read> query: array<vec4<i32>>;
@group(0) @binding(4) var<storage, read> visible: array<u32>;
@group(0) @binding(5) var<storage, read_write> highs: array<f32>;
@group(0) @binding(6) var<storage, read_write> largest: array<f32>;
const none = -3.0e38;
var<workgroup> sums: array<i32, ${blockRows}>;
var<workgroup> lows: array<f32, 16>;

fn product(word: u32, numbers: vec4<i32>) -> i32 {
  let bytes = bitcast<vec4<i32>>(vec4<u32>(word) << vec4<u32>(24u, 16u, 8u, 0u)) >> vec4<u32>(24u);
  return dot(bytes, numbers);
}

@compute @workgroup_size(${blockRows})
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) local: u32) {
  let lane = local % 16u;
  var low = none;
  for (var part = 0u; part < ${blockRows / 16}u; part++) {
    let first = group.x * ${blockRows}u + part * 16u;
    let row = first + local / 16u;
    var sum = 0;
    if (row < settings.rows) {
      for (var piece = lane; piece < settings.pieces; piece += 16u) {
        let words = rows[row * settings.pieces + piece];
        sum += product(words.x, query[4u * piece]) + product(words.y, query[4u * piece + 1u]) +
          product(words.z, query[4u * piece + 2u]) + product(words.w, query[4u * piece + 3u]);
      }
    }
    sums[local] = sum;
    workgroupBarrier();
    let mine = first + local;
    if (local < 16u && mine < settings.rows) {
      var total = 0.0;
      for (var i = 0u; i < 16u; i++) { total += f32(sums[local * 16u + i]); }
      let column = columns[mine];
      let estimate = total * column.scale * settings.scale;
      let error = settings.norm * column.error + settings.lost;
      let isVisible = ((visible[column.document / 32u] >> (column.document % 32u)) & 1u) == 1u;
      highs[mine] = select(none, estimate + error, isVisible);
      low = max(low, select(none, estimate - error, isVisible));
    }
    workgroupBarrier();
  }
  if (local < 16u) { lows[local] = low; }
  workgroupBarrier();
  if (local == 0u) {
    var most = none;
    for (var i = 0u; i < 16u; i++) { most = max(most, lows[i]); }
    largest[group.x] = most;
  }
}`

/** The rows whose upper bound reaches `least`; `found[0]` counts all of them. */
export const selectShader = `
struct Settings { rows: u32, least: f32 }
@group(0) @binding(0) var<uniform> settings: Settings;
@group(0) @binding(1) var<storage, read> highs: array<f32>;
@group(0) @binding(2) var<storage, read_write> found: array<u32>;
@group(0) @binding(3) var<storage, read_write> count: atomic<u32>;

@compute @workgroup_size(${blockRows})
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
  if (id.x >= settings.rows || highs[id.x] < settings.least) { return; }
  let place = atomicAdd(&count, 1u);
  if (place < ${mostFound}u) { found[place] = id.x; }
}`
