import { mkdtempSync, readFileSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterAll, expect, test } from "vitest"
import { encodeAs } from "../testing/ggml-encode.ts"
import { unpacked, writtenPanels } from "../testing/panels.ts"
import { inputRows, matrixOfType, valuesOf, worstOf } from "../testing/products.ts"
import { groupValues } from "../weights/ggml-blocks.ts"
import { type Matrix, stacked } from "../weights/matrix.ts"
import { GraphBuilder } from "./graph-builder.ts"
import { writeGraph } from "./graph-cache.ts"
import { int8Row, quantizeRow } from "./int8-blocks.ts"
import { kernelsVersion } from "./kernels.ts"
import { linear } from "./linear.ts"
import { openSession } from "./onnx-session.ts"
import { Tensor } from "./runtime.ts"
import { WeightStore } from "./weight-store.ts"

const folder = mkdtempSync(join(tmpdir(), "rakit-panels-"))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

/** The values of a row that `quantizeRow` gives. */
const eightBitValues = (matrix: Matrix, index: number): readonly number[] => {
  const row = int8Row(matrix.columns)
  const scratch = new Float32Array(matrix.columns)
  quantizeRow(matrix.typeOf(index), matrix.row(index), scratch, row)
  return Array.from(scratch, (_, i) => row.scales[i >> 5]! * (row.q[i]! - row.zeros[i >> 5]!))
}

const written = (matrix: Matrix, precision: "auto" | "int8" | "int4") =>
  writtenPanels(folder, matrix, precision)

// plus 0: a zero has no sign here
const asFloats = (values: readonly number[]) => values.map((value) => Math.fround(value) + 0)

test.each([
  { type: "Q2_K", rows: 70, bits: 2, zero: 0, types: ["steps", "steps"] },
  { type: "Q3_K", rows: 80, bits: 3, zero: 4, types: ["steps"] },
  { type: "Q4_0", rows: 37, bits: 4, zero: 8, types: ["halves"] },
  { type: "Q4_1", rows: 80, bits: 4, zero: 0, types: ["halves", "halves"] },
  { type: "Q4_K", rows: 70, bits: 4, zero: 0, types: ["steps", "steps"] },
  { type: "IQ4_NL", rows: 37, bits: 4, zero: 128, types: ["halves"] },
  { type: "IQ4_XS", rows: 70, bits: 4, zero: 128, types: ["steps"] },
  { type: "Q5_0", rows: 37, bits: 5, zero: 16, types: ["halves"] },
  { type: "Q5_1", rows: 80, bits: 5, zero: 0, types: ["halves", "halves"] },
  { type: "Q5_K", rows: 70, bits: 5, zero: 0, types: ["steps", "steps"] },
  { type: "Q6_K", rows: 70, bits: 6, zero: 32, types: ["steps"] },
])("$type is kept in $bits bits without loss", ({ type, rows, bits, zero, types }) => {
  const matrix = matrixOfType(type, rows, 512)
  const found = written(matrix, "auto")
  expect(found.attributes).toEqual({ N: rows, K: 512, bits, zero })
  if (bits === 4) expect(found).toEqual(written(matrix, "int4"))
  const { levels, values, types: stored } = unpacked(found)
  expect(stored).toEqual(types)
  const wanted = new Uint8Array(groupValues(bits))
  for (let row = 0; row < rows; row++) {
    expect(asFloats(values[row]!)).toEqual(asFloats(valuesOf(matrix, row)))
    for (let at = 0; at < 512; at += wanted.length) {
      matrix.typeOf(row).levels!.read(matrix.row(row), at / wanted.length, wanted)
      expect(levels[row]!.slice(at, at + wanted.length)).toEqual([...wanted])
    }
  }
})

test.each([
  { type: "Q5_0", rows: 37, types: ["halves"] },
  { type: "Q5_1", rows: 80, types: ["halves", "halves"] },
  { type: "Q5_K", rows: 70, types: ["steps", "steps"] },
])("$type is kept in 8 bits without loss", ({ type, rows, types }) => {
  const matrix = matrixOfType(type, rows, 512)
  const found = written(matrix, "int8")
  expect(found.attributes).toEqual({ N: rows, K: 512, bits: 8, zero: 128 })
  const { values, types: stored } = unpacked(found)
  expect(stored).toEqual(types)
  for (let row = 0; row < rows; row++)
    expect(asFloats(values[row]!)).toEqual(asFloats(valuesOf(matrix, row)))
})

test.each([
  { type: "Q8_0", rows: 33, columns: 96, stored: "halves" },
  { type: "Q4_0", rows: 16, columns: 64, stored: "floats" },
  { type: "F32", rows: 70, columns: 75, stored: "floats" },
  { type: "F16", rows: 5, columns: 31, stored: "floats" },
])("$type is kept in 8 bits as quantizeRow has it", ({ type, rows, columns, stored }) => {
  const matrix = matrixOfType(type, rows, columns)
  const found = written(matrix, "int8")
  expect(found.attributes).toEqual({ N: rows, K: columns, bits: 8, zero: 128 })
  const { levels, values, types } = unpacked(found)
  expect(types).toEqual([stored])
  for (let row = 0; row < rows; row++) {
    expect(values[row]!.slice(0, columns)).toEqual(eightBitValues(matrix, row))
    for (const level of levels[row]!.slice(columns)) expect(level).toBe(128)
  }
})

test("zero points of 8 bits become shifts", () => {
  const matrix = matrixOfType("Q4_1", 20, 64)
  const found = written(matrix, "int8")
  const { values, types } = unpacked(found)
  expect([found.attributes.zero, types]).toEqual([128, ["floats", "floats"]])
  for (let row = 0; row < 20; row++)
    for (const [i, value] of eightBitValues(matrix, row).entries())
      expect(values[row]![i]).toBeCloseTo(value, 6)
})

test("floats become 4 bits that are off by no more than a step", () => {
  const matrix = matrixOfType("F32", 18, 64)
  const { values } = unpacked(written(matrix, "int4"))
  for (let row = 0; row < 18; row++)
    for (const [i, value] of valuesOf(matrix, row).entries())
      expect(Math.abs(values[row]![i]! - value)).toBeLessThanOrEqual(
        0.02 * (1 + (row % 7)) * (0.25 / 2 + 0.5 / 15),
      )
})

test("rows that a panel lacks are zeros", () => {
  for (const [type, precision] of [
    ["Q4_1", "int4"],
    ["Q4_K", "int4"],
    ["Q5_0", "auto"],
    ["Q2_K", "auto"],
    ["Q3_K", "auto"],
    ["Q6_K", "auto"],
    ["Q8_0", "int8"],
  ] as const) {
    const { levels, values } = unpacked(written(matrixOfType(type, 66, 256), precision))
    const zeros = new Array(14).fill(new Array(256).fill(0))
    expect(levels.length).toBe(80)
    expect(levels.slice(66)).toEqual(zeros)
    expect(values.slice(66).map((row) => row.map((value) => value + 0))).toEqual(zeros)
  }
})

test("rows of several types have floats as scales, and each its values", () => {
  for (const [types, zero, precision] of [
    [["Q4_0", "Q4_1"], 0, "auto"],
    [["Q4_K", "Q4_0"], 0, "int4"],
    [["Q5_0", "Q5_K"], 0, "auto"],
    [["Q5_0", "Q5_K"], 128, "int8"],
  ] as const) {
    const matrix = stacked(types.map((type) => matrixOfType(type, 5, 256)))
    const found = written(matrix, precision)
    const { values, types: stored } = unpacked(found)
    expect([found.attributes.zero, stored]).toEqual([zero, ["floats", "floats"]])
    for (let row = 0; row < 10; row++)
      expect(asFloats(values[row]!)).toEqual(asFloats(valuesOf(matrix, row)))
  }
})

test("rows of types with scales of their own for 16 values are rounded beside others", () => {
  for (const types of [
    ["Q6_K", "Q5_K"],
    ["Q2_K", "Q3_K"],
  ] as const) {
    const matrix = stacked(types.map((type) => matrixOfType(type, 5, 256)))
    const found = written(matrix, "auto")
    expect(found).toEqual(written(matrix, "int8"))
    expect(found.attributes).toEqual({ N: 10, K: 256, bits: 8, zero: 128 })
    const { values } = unpacked(found)
    for (let row = 0; row < 10; row++) {
      const wanted = valuesOf(matrix, row)
      const most = Math.max(...wanted.map(Math.abs))
      for (const [i, value] of wanted.entries())
        expect(Math.abs(values[row]![i]! - value)).toBeLessThan(most / 253)
    }
  }
})

test("codes beside other levels are rounded to these", () => {
  const matrix = stacked([matrixOfType("IQ4_XS", 5, 256), matrixOfType("Q4_K", 6, 256)])
  const found = written(matrix, "int4")
  expect([found.attributes.zero, found.codes]).toEqual([0, undefined])
  const { values } = unpacked(found)
  for (let row = 0; row < 11; row++) {
    const wanted = valuesOf(matrix, row)
    const most = Math.max(...wanted.map(Math.abs))
    for (const [i, value] of wanted.entries())
      if (row < 5) expect(Math.abs(values[row]![i]! - value)).toBeLessThan(0.3 * most)
      else expect(Math.fround(values[row]![i]!)).toBe(Math.fround(value))
  }
})

test("errors name the tensor", () => {
  const infinite = encodeAs("F32", new Float32Array(32).fill(Number.POSITIVE_INFINITY))
  const damaged = {
    ...matrixOfType("F32", 3, 32),
    name: "up.weight",
    row: () => Buffer.from(infinite),
  }
  for (const precision of ["int4", "int8"] as const)
    expect(() => written(damaged, precision)).toThrow(
      /'up\.weight': it holds a value that is not a/,
    )
  expect(() => written(matrixOfType("F32", 3, 40), "int4")).toThrow(/int4 needs a multiple of 32/)
})

test("only graphs with such products ask for the operators of the native kernels", () => {
  const imported = Buffer.from([0x42, 9, 0x0a, 5, ...Buffer.from("rakit"), 0x10, 1])
  const product = (precision: "int8" | "fp32", target: "cpu" | "gpu") => {
    const store = new WeightStore(folder, `import-${precision}-${target}.bin`)
    const graph = new GraphBuilder(store, target, true)
    linear(graph, "x", matrixOfType("F32", 16, 32), precision)
    store.close()
    return graph.toBytes().includes(imported)
  }
  expect(product("int8", "cpu")).toBe(true)
  expect([product("fp32", "cpu"), product("int8", "gpu")]).toEqual([false, false])
})

test.skipIf(!kernelsVersion())(
  "matrices of more than a large page are mapped in one piece, and as they were written",
  async () => {
    const [rows, columns] = [3_000, 1_024]
    const files = { graph: "large.onnx", weights: "large.bin" }
    const [x] = inputRows(1, columns)
    writeGraph(folder, files, (graph) => {
      graph.input("x", "float", ["B", "S", columns])
      for (const type of ["Q4_0", "Q4_1"])
        graph.output(type, linear(graph, "x", matrixOfType(type, rows, columns), "int4"), "float", [
          ...["B", "S"],
          rows,
        ])
    })
    const session = await openSession(join(folder, files.graph), 2)
    const found = await session.run({ x: new Tensor("float32", x!, [1, 1, columns]) })
    const mappings = readFileSync("/proc/self/maps", "utf8").split("\n")
    await session.release()
    expect(mappings.filter((line) => line.endsWith(join(folder, files.weights)))).toHaveLength(1)
    for (const type of ["Q4_0", "Q4_1"]) {
      const { values } = unpacked(written(matrixOfType(type, rows, columns), "int4"))
      const product = found[type]!.data as Float32Array
      expect(worstOf(x!, values.slice(0, rows), product, 32)).toBeLessThanOrEqual(1)
    }
  },
)
