import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterAll, beforeAll, expect, test } from "vitest"
import { channelPrecisions } from "../testing/channel-precisions.ts"
import { ggmlTypeNamed } from "../testing/ggml-encode.ts"
import type { Matrix } from "../weights/matrix.ts"
import { writeGraph } from "./graph-cache.ts"
import { quantizeChannel } from "./int8-channels.ts"
import { linear } from "./linear.ts"
import { openSession, type Session } from "./onnx-session.ts"
import { Tensor } from "./runtime.ts"

const folder = mkdtempSync(join(tmpdir(), "rakit-channels-"))
const files = { graph: "model.onnx", weights: "weights.bin" }
const [rows, columns] = [96, 160]
const weights = Array.from({ length: rows }, (_, row) =>
  Float32Array.from(
    { length: columns },
    (_, i) => (row + 1) * Math.sin(row * 31 + i * i) * (i === row ? 8 : 1),
  ),
)
const matrix: Matrix = {
  name: "up.weight",
  rows,
  columns,
  typeOf: () => ggmlTypeNamed("F32").type,
  row: (row) => Buffer.from(weights[row]!.buffer),
}
let session: Session

beforeAll(async () => {
  writeGraph(folder, files, (graph) => {
    graph.input("x", "float", ["B", "S", columns])
    graph.output("y", linear(graph, "x", matrix, "int8-channel"), "float", ["B", "S", rows])
  })
  session = await openSession(join(folder, files.graph), 1)
})
afterAll(async () => {
  await session.release()
  rmSync(folder, { recursive: true, force: true })
})

const product = async (batch: readonly Float32Array[]): Promise<readonly Float32Array[]> => {
  const x = new Float32Array(batch.length * columns)
  for (const [i, row] of batch.entries()) x.set(row, i * columns)
  const { y } = await session.run({ x: new Tensor("float32", x, [1, batch.length, columns]) })
  return batch.map((_, i) => (y!.data as Float32Array).slice(i * rows, (i + 1) * rows))
}

/** Inputs of all sizes, one with a number that is far beyond the others, and zeros. */
const inputs = Array.from({ length: 40 }, (_, n) =>
  Float32Array.from(
    { length: columns },
    (_, i) => 10 ** ((n % 13) - 6) * Math.cos(n * 977 + i * i) * (n % 5 === 0 && i === n ? 500 : 1),
  ),
).concat(new Float32Array(columns))

test("a row of weights becomes integers, the largest of them 127", () => {
  const into = new Int8Array(columns)
  const scale = quantizeChannel(weights[3]!, into)
  expect(Math.max(...into.map(Math.abs))).toBe(127)
  for (const [i, value] of weights[3]!.entries())
    expect(Math.abs(value - scale * into[i]!)).toBeLessThanOrEqual(scale * 0.5001)
  expect([quantizeChannel(new Float32Array(columns), into), ...into]).toEqual(
    new Array(columns + 1).fill(0),
  )
})

const exactly = test.skipIf(channelPrecisions.length === 0)

exactly(
  "a product is that of the rounded weights, however the input's numbers differ in size",
  async () => {
    const quantized = weights.map((row) => {
      const q = new Int8Array(columns)
      return { q, scale: quantizeChannel(row, q) }
    })
    for (const [n, row] of (await product(inputs)).entries()) {
      const x = inputs[n]!
      const length = Math.hypot(...x)
      for (const [channel, value] of row.entries()) {
        const { q, scale } = quantized[channel]!
        const exact = x.reduce((sum, number, i) => sum + number * scale * q[i]!, 0)
        const most = length * scale * Math.hypot(...q)
        expect(Math.abs(value - exact)).toBeLessThanOrEqual(2e-4 * most)
      }
    }
  },
)

test("a row has the same bits alone and in any company", async () => {
  const together = await product(inputs)
  for (const [n, x] of inputs.entries()) expect((await product([x]))[0]).toEqual(together[n])
  const some = await product(inputs.slice(7, 24))
  for (const [n, row] of some.entries()) expect(row).toEqual(together[7 + n])
})

test("an open session leaves the arithmetic of its thread as it is", () => {
  const least = Float64Array.of(Number.MIN_VALUE)
  expect(least.map((value) => value * 2)[0]).toBeGreaterThan(0)
})
