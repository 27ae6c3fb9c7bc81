import { mkdtempSync, readFileSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterAll, describe, expect, test } from "vitest"
import { inputRows, matrixOfType } from "../testing/products.ts"
import type { GraphBuilder, Value } from "./graph-builder.ts"
import { writeGraph } from "./graph-cache.ts"
import { kernelsVersion } from "./kernels.ts"
import { linear } from "./linear.ts"
import { openSession } from "./onnx-session.ts"
import { Tensor } from "./runtime.ts"

const folder = mkdtempSync(join(tmpdir(), "rakit-chain-"))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

const [width, hidden, depth] = [96, 160, 24]

/** Products and gated units, one after the other; `between` is given each value. */
const network = (graph: GraphBuilder, between: (value: Value) => Value): void => {
  graph.input("x", "float", ["B", "S", "W"])
  let value = "x"
  let middle = value
  for (let layer = 0; layer < depth; layer++) {
    const gates = between(
      linear(graph, value, matrixOfType(layer % 2 ? "Q4_1" : "Q8_0", 2 * hidden, width), "auto"),
    )
    const attributes = { activation: 1 + (layer % 2) }
    const unit = between(graph.node("GatedUnit", [gates], { attributes, domain: "rakit" }))
    value = between(linear(graph, unit, matrixOfType("Q4_0", width, hidden), "auto"))
    if (layer === depth / 2) middle = value
  }
  // read by an operator of the chain, and by another node
  graph.output("middle", middle, "float", ["B", "S", width])
  graph.output("y", value, "float", ["B", "S", width])
}

const open = (name: string, threads: number, isApart: boolean) => {
  const file = `${name}.onnx`
  writeGraph(folder, { graph: file, weights: `${name}.bin` }, (graph) =>
    network(graph, (value) => (isApart ? graph.node("Identity", [value]) : value)),
  )
  expect(readFileSync(join(folder, file)).includes("Chain")).toBe(!isApart)
  return openSession(join(folder, file), threads)
}

describe.skipIf(!kernelsVersion())("a chain of operators", () => {
  const rows = inputRows(70, width)
  const feed = (from: number, count: number) => {
    const x = new Float32Array(count * width)
    for (let i = 0; i < count; i++) x.set(rows[from + i]!, i * width)
    return { x: new Tensor("float32", x, [1, count, width]) }
  }
  const counts = [1, 70, 3, 1, 40, 2]

  // more threads than cores, too: some come late, or lose their core in the middle of a part
  test.each([1, 2, 3, 8])("has the bits of as many nodes, on %i threads", async (threads) => {
    const [joined, apart] = await Promise.all([
      open(`joined-${threads}`, threads, false),
      open(`apart-${threads}`, threads, true),
    ])
    for (let round = 0; round < 10; round++)
      for (const count of counts) {
        const input = feed(round % (71 - count), count)
        const [own, wanted] = [await joined.run(input), await apart.run(input)]
        for (const name of ["y", "middle"]) {
          expect(own[name]!.dims).toEqual([1, count, width])
          expect(own[name]!.data).toEqual(wanted[name]!.data)
        }
      }
    await Promise.all([joined.release(), apart.release()])
  })

  test("may be asked again before it has answered", async () => {
    const session = await open("shared", 2, false)
    const alone = []
    for (const count of counts) alone.push(await session.run(feed(0, count)))
    const together = await Promise.all(counts.map((count) => session.run(feed(0, count))))
    expect(together.map(({ y }) => y!.data)).toEqual(alone.map(({ y }) => y!.data))
    await session.release()
  })

  test("that can't be run fails as nodes do, and the next call is as before", async () => {
    const session = await open("failing", 2, false)
    const wrong = new Tensor("float32", new Float32Array(2 * 64), [1, 2, 64])
    const before = await session.run(feed(0, 3))
    await expect(session.run({ x: wrong })).rejects.toThrow("x has another number of columns")
    expect((await session.run(feed(0, 3))).y!.data).toEqual(before.y!.data)
    await session.release()
  })
})
