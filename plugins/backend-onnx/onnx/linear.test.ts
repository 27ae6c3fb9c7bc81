import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterAll, expect, test } from "vitest"
import { ggmlTypeNamed } from "../testing/ggml-encode.ts"
import { inputRows, matrixOfType } from "../testing/products.ts"
import type { Matrix } from "../weights/matrix.ts"
import { GraphBuilder } from "./graph-builder.ts"
import { writeGraph } from "./graph-cache.ts"
import { kernelsVersion } from "./kernels.ts"
import { bytesPerWeight, linear } from "./linear.ts"
import { openSession } from "./onnx-session.ts"
import { Tensor } from "./runtime.ts"
import { WeightStore } from "./weight-store.ts"

const folder = mkdtempSync(join(tmpdir(), "rakit-linear-"))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

const rows = 16
const columns = 512

test.each(
  [
    ...["Q8_0", "Q4_0", "Q4_1", "Q5_0", "Q5_1", "F32"],
    ...["Q2_K", "Q3_K", "Q4_K", "Q5_K", "Q6_K"],
  ].flatMap((name) => [
    { name, kernels: false },
    { name, kernels: true },
  ]),
)(
  "bytesPerWeight of $name is what the weights of a graph take (native kernels: $kernels)",
  ({ name, kernels }) => {
    const store = new WeightStore(folder, `${name}-${kernels}.bin`)
    linear(new GraphBuilder(store, "cpu", kernels), "x", matrixOfType(name, rows, columns), "auto")
    const { offset } = store.reserve(0)
    store.close()
    expect(offset).toBe(rows * columns * bytesPerWeight(ggmlTypeNamed(name).type, kernels))
  },
)

test("a matrix in 16 bits takes two bytes a weight, and a value that none is near is refused by name", () => {
  const of = (value: number): Matrix => {
    const row = Buffer.from(new Float32Array(columns).fill(value).buffer)
    return {
      name: "up.weight",
      rows,
      columns,
      typeOf: () => ggmlTypeNamed("F32").type,
      row: () => row,
    }
  }
  const store = new WeightStore(folder, "halves.bin")
  linear(new GraphBuilder(store), "x", of(65_504), "fp16")
  expect(store.reserve(0).offset).toBe(2 * rows * columns)
  expect(() => linear(new GraphBuilder(store), "x", of(-65_536), "fp16")).toThrow(
    "the tensor 'up.weight' has the value -65536, and fp16 ends at 65504",
  )
  store.close()
})

test.skipIf(!kernelsVersion()).each(["Q4_0", "Q4_1", "Q8_0"])(
  "a native product by %s has a bias without a node for it",
  async (type) => {
    const [width, outputs, count] = [64, 1000, 35]
    const bias = Float32Array.from({ length: outputs }, (_, i) => Math.sin(i) / 7)
    writeGraph(folder, { graph: `${type}.onnx`, weights: `${type}-bias.bin` }, (graph) => {
      graph.input("x", "float", ["B", "S", width])
      const matrix = matrixOfType(type, outputs, width)
      graph.output("bare", linear(graph, "x", matrix, "auto"), "float", ["B", "S", outputs])
      graph.output("y", linear(graph, "x", matrix, "auto", { bias }), "float", ["B", "S", outputs])
      expect(graph.toBytes().includes("Add")).toBe(false)
    })
    const session = await openSession(join(folder, `${type}.onnx`), 2)
    const x = Float32Array.from(inputRows(count, width).flatMap((row) => [...row]))
    const { bare, y } = await session.run({ x: new Tensor("float32", x, [1, count, width]) })
    await session.release()
    expect(y!.data).toEqual(
      (bare!.data as Float32Array).map((value, i) => value + bias[i % outputs]!),
    )
  },
)
