import { deepEqual, equal } from "node:assert/strict"
import { readFileSync } from "node:fs"
import { join } from "node:path"
import { GraphBuilder } from "../onnx/graph-builder.ts"
import { linear } from "../onnx/linear.ts"
import { scaleKinds } from "../onnx/panel-format.ts"
import { WeightStore } from "../onnx/weight-store.ts"
import { halfAt } from "../weights/float16.ts"
import { groupValues } from "../weights/ggml-blocks.ts"
import type { Matrix } from "../weights/matrix.ts"

/** What the graph of a product has: attributes and constants. */
export const writtenPanels = (
  folder: string,
  matrix: Matrix,
  precision: "auto" | "int8" | "int4",
) => {
  const file = `${matrix.name}-${precision}-${matrix.rows}-${matrix.columns}.bin`
  const store = new WeightStore(folder, file)
  const graph = new GraphBuilder(store, "cpu", true)
  const calls: Parameters<GraphBuilder["nodeWith"]>[] = []
  const nodeWith = graph.nodeWith.bind(graph)
  graph.nodeWith = (...call) => {
    calls.push(call)
    return nodeWith(...call)
  }
  linear(graph, "x", matrix, precision)
  // the file's last region may be shorter than its place
  store.close()
  const stored = readFileSync(join(folder, file))
  equal(stored.length, store.size)
  const [op, inputs, , options] = calls[0]!
  deepEqual([op, inputs, calls.length], ["BlockMatMul", ["x", graph.wholeFile()], 1])
  const { scale_kind, levels, scales, shifts, codes, ...attributes } = options!
    .attributes as Record<
    "N" | "K" | "bits" | "zero" | "scale_kind" | "levels" | "scales" | "shifts" | "codes",
    number
  >
  const blocks = Math.ceil(attributes.N / 16) * Math.ceil(attributes.K / 32)
  const groups = (blocks * 32) / groupValues(attributes.bits)
  const constant = (line: number, bytes: number) => {
    const data = stored.subarray(64 * line, 64 * line + bytes)
    equal(data.length, bytes)
    return data
  }
  const kind = scaleKinds[scale_kind]!
  const parts = shifts ? 2 : 1
  const superGroups = 256 / groupValues(attributes.bits)
  const recordBytes = parts * (32 + 16 * superGroups)
  const bytes = { floats: 64, halves: 32, steps: recordBytes / superGroups }[kind] * groups
  const numbers = (line: number, part: number) =>
    kind === "steps"
      ? stepsOf(constant(line, bytes), part, parts, superGroups)
      : numbersOf(kind, constant(line, bytes))
  return {
    attributes,
    q: constant(levels, blocks * 64 * attributes.bits),
    codes: codes ? [...constant(codes, 16)] : undefined,
    types: new Array<string>(parts).fill(kind),
    scales: numbers(scales, 0),
    shifts: shifts ? numbers(shifts, 1) : undefined,
  }
}

type Written = ReturnType<typeof writtenPanels>

/** Numbers `[panels, groups, 16]`. */
const numbersOf = (kind: "floats" | "halves", data: Buffer): readonly number[] =>
  kind === "floats"
    ? Array.from({ length: data.length / 4 }, (_, i) => data.readFloatLE(4 * i))
    : Array.from({ length: data.length / 2 }, (_, i) => halfAt(data, 2 * i))

/** Such numbers of steps, those of scales (part 0) or of shifts (1). */
const stepsOf = (
  data: Buffer,
  part: number,
  parts: number,
  superGroups: number,
): readonly number[] => {
  const recordBytes = parts * (32 + 16 * superGroups)
  const length = (data.length / recordBytes) * superGroups * 16
  return Array.from({ length }, (_, i) => {
    const record = Math.floor(i / (16 * superGroups)) * recordBytes
    const [group, n] = [Math.floor(i / 16) % superGroups, i % 16]
    const unit = halfAt(data, record + 32 * part + 2 * n)
    return unit * data.readInt8(record + 32 * parts + 16 * (group * parts + part) + n)
  })
}

/** Reads the layout a byte after another; `levels` and `values` have whole panels and blocks. */
export const unpacked = ({
  attributes: { N, K, bits, zero },
  q,
  codes,
  types,
  scales,
  shifts,
}: Written) => {
  const [panels, blocks] = [Math.ceil(N / 16), Math.ceil(K / 32)]
  const levels = Array.from({ length: 16 * panels }, () => new Array<number>(32 * blocks).fill(-1))
  for (const [i, byte] of q.entries()) {
    const block = Math.floor(i / (64 * bits))
    const p = i % (64 * bits)
    const [n, k] = [16 * Math.floor(block / blocks), 32 * (block % blocks)]
    const row = levels[n + ((p & 63) >> 2)]!
    const column = k + 4 * (p >> 6) + (p & 3)
    if (bits === 8) row[column] = byte
    else if (bits > 3 && p < 256) [row[column], row[column + 16]] = [byte & 15, byte >> 4]
    else if (bits === 6 || p < 128) {
      // two bits of four columns of a row
      const pair = bits === 6 ? p - 256 : p
      for (let quarter = 0; quarter < 4; quarter++) {
        const at = k + 16 * (pair >> 6) + 4 * quarter + (p & 3)
        const two = (byte >> (2 * quarter)) & 3
        row[at] = bits === 6 ? row[at]! | (two << 4) : two
      }
    }
    // the highest bits of the same column of two rows
    else
      for (let bit = 0; bit < 8; bit++) {
        const at = 8 * (p - 64 * (bits - 1)) + bit
        levels[n + ((at & 63) >> 2)]![k + 4 * (at >> 6) + (at & 3)]! |=
          ((byte >> bit) & 1) << (bits - 1)
      }
  }
  const inGroup = groupValues(bits)
  const at = (n: number, k: number) =>
    ((n >> 4) * blocks * (32 / inGroup) + Math.floor(k / inGroup)) * 16 + (n & 15)
  const values = levels.map((row, n) =>
    row.map((level, k) => {
      const number = (codes?.[level] ?? level) - zero
      return scales[at(n, k)]! * number + (shifts?.[at(n, k)] ?? 0)
    }),
  )
  return { levels, values, types }
}
