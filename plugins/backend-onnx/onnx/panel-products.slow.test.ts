import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterAll, beforeAll, describe, expect, test } from "vitest"
import { unpacked, writtenPanels } from "../testing/panels.ts"
import { inputBlock, inputRows, matrixOfType, worstOf } from "../testing/products.ts"
import { writeGraph } from "./graph-cache.ts"
import { kernelsVersion } from "./kernels.ts"
import { linear } from "./linear.ts"
import { openSession, type Session } from "./onnx-session.ts"
import { Tensor } from "./runtime.ts"

const folder = mkdtempSync(join(tmpdir(), "rakit-panel-products-"))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

const cases = [
  { type: "Q4_0", precision: "int4", rows: 100, columns: 512 },
  { type: "Q4_1", precision: "int4", rows: 64, columns: 256 },
  { type: "Q4_K", precision: "int4", rows: 35, columns: 512 },
  { type: "IQ4_NL", precision: "int4", rows: 40, columns: 96 },
  { type: "IQ4_XS", precision: "int4", rows: 35, columns: 512 },
  { type: "F32", precision: "int4", rows: 48, columns: 96 },
  { type: "Q5_K", precision: "int8", rows: 35, columns: 512 },
  { type: "Q5_K", precision: "auto", rows: 35, columns: 512 },
  { type: "Q5_K", precision: "auto", rows: 20, columns: 2304 },
  { type: "Q5_0", precision: "auto", rows: 40, columns: 96 },
  { type: "Q2_K", precision: "auto", rows: 35, columns: 512 },
  { type: "Q2_K", precision: "auto", rows: 20, columns: 2304 },
  { type: "Q3_K", precision: "auto", rows: 35, columns: 512 },
  { type: "Q3_K", precision: "auto", rows: 20, columns: 2304 },
  { type: "Q6_K", precision: "auto", rows: 35, columns: 512 },
  { type: "Q6_K", precision: "auto", rows: 20, columns: 2304 },
  { type: "Q6_K", precision: "int8", rows: 35, columns: 512 },
  { type: "Q8_0", precision: "int8", rows: 100, columns: 512 },
  { type: "Q4_1", precision: "int8", rows: 33, columns: 64 },
  { type: "F32", precision: "int8", rows: 130, columns: 75 },
] as const

describe.skipIf(!kernelsVersion()).each(cases)(
  "the native product of $type in $precision, $rows x $columns",
  ({ type, precision, rows, columns }) => {
    const matrix = matrixOfType(type, rows, columns)
    const name = `${type}-${precision}-${rows}`
    const files = { graph: `${name}.onnx`, weights: `${name}.native.bin` }
    const inputs = inputRows(64, columns)
    let session: Session
    beforeAll(async () => {
      writeGraph(folder, files, (graph) => {
        graph.input("x", "float", ["B", "S", columns])
        graph.output("y", linear(graph, "x", matrix, precision), "float", ["B", "S", rows])
      })
      session = await openSession(join(folder, files.graph), 2)
    })
    afterAll(() => session.release())

    const product = async (batch: readonly Float32Array[]) => {
      const x = new Float32Array(batch.length * columns)
      for (const [i, row] of batch.entries()) x.set(row, i * columns)
      const { y } = await session.run({ x: new Tensor("float32", x, [1, batch.length, columns]) })
      expect(y!.dims).toEqual([1, batch.length, rows])
      return batch.map((_, i) => (y!.data as Float32Array).slice(i * rows, (i + 1) * rows))
    }

    test("is off by no more than what rounding the input to 8 bits makes", async () => {
      const found = writtenPanels(folder, matrix, precision)
      const weights = unpacked(found).values.slice(0, rows)
      const block = inputBlock(found.attributes.bits)
      for (const [n, row] of (await product(inputs)).entries())
        expect(worstOf(inputs[n]!, weights, row, block)).toBeLessThanOrEqual(1)
    })

    test("has the same bits for a row alone and in any company", async () => {
      const together = await product(inputs)
      for (const count of [1, 2, 3, 4, 5, 7, 16, 17])
        for (let from = 0; from + count <= inputs.length; from += count)
          expect(await product(inputs.slice(from, from + count))).toEqual(
            together.slice(from, from + count),
          )
    })
  },
)
