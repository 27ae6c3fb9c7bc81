import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest"
import { inputRows, matrixOfType } from "../testing/products.ts"
import type { GraphBuilder, Value } from "./graph-builder.ts"
import { writeGraph } from "./graph-cache.ts"
import { kernelsVersion } from "./kernels.ts"
import { linear } from "./linear.ts"
import { plainNorm } from "./norms.ts"
import { openSession, type Session } from "./onnx-session.ts"
import { type ProductInput, productInput } from "./product-input.ts"
import { gatedProducts } from "./products.ts"
import { Tensor } from "./runtime.ts"

const folder = mkdtempSync(join(tmpdir(), "rakit-product-input-"))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

const epsilon = 1e-5
const outputs = 40
const normWeights = (width: number) => Float32Array.from({ length: width }, (_, i) => 1 + (i % 3))

/** The rows of `x` and what is added to them, by the graph's own nodes and by the product's. */
const normed = (graph: GraphBuilder, width: number, isAdded: boolean): ProductInput => {
  const weights = graph.floats([...normWeights(width)])
  const attributes = { epsilon: { float: epsilon } }
  const byNodes = (): Value => {
    const sum = isAdded ? graph.node("Add", ["x", "added"]) : "x"
    const building = { graph, config: { normEpsilon: epsilon } }
    return plainNorm(building as Parameters<typeof plainNorm>[0], sum, normWeights(width))
  }
  const step = { x: "x", inputs: isAdded ? [weights, "added"] : [weights], attributes }
  return productInput(byNodes, isAdded ? { ...step, sum: "sum" } : step)
}

const gated = (graph: GraphBuilder, width: number, activation: "silu" | "gelu"): ProductInput => {
  const matrix = matrixOfType("Q8_0", width, 32)
  const building = { graph, config: { activation }, precision: "int8" }
  return gatedProducts(building as Parameters<typeof gatedProducts>[0], [matrix, matrix], () => "x")
}

const inputs = {
  norm: { of: (graph: GraphBuilder, width: number) => normed(graph, width, false), halves: 1 },
  "sum and norm": {
    of: (graph: GraphBuilder, width: number) => normed(graph, width, true),
    halves: 1,
  },
  silu: { of: (graph: GraphBuilder, width: number) => gated(graph, width, "silu"), halves: 2 },
  gelu: { of: (graph: GraphBuilder, width: number) => gated(graph, width, "gelu"), halves: 2 },
} as const

type Kind = keyof typeof inputs
const kinds = Object.keys(inputs) as readonly Kind[]

/** A graph of one product, whose rows are made by the product itself or by nodes. */
const openProduct = (kind: Kind, type: string, width: number, isFused: boolean) => {
  const name = `${kind}-${type}-${width}-${isFused}`.replaceAll(" ", "-")
  const { of, halves } = inputs[kind]
  writeGraph(folder, { graph: `${name}.onnx`, weights: `${name}.bin` }, (graph) => {
    graph.input("x", "float", ["B", "S", halves * width])
    if (kind === "sum and norm") graph.input("added", "float", ["B", "S", width])
    const made = of(graph, width)
    const product = linear(
      graph,
      isFused ? made : made.value(),
      matrixOfType(type, outputs, width),
      "auto",
    )
    graph.output("y", product, "float", ["B", "S", outputs])
    if (isFused && made.step?.sum) graph.output("total", "sum", "float", ["B", "S", width])
  })
  return openSession(join(folder, `${name}.onnx`), 2)
}

test("the value is made by nodes at the first call", () => {
  const make = vi.fn(() => "made")
  const input = productInput(make)
  expect(make).not.toHaveBeenCalled()
  expect([input.value(), input.value(), make.mock.calls.length]).toEqual(["made", "made", 1])
})

const cases = kinds.flatMap((kind) => [
  { kind, type: "Q4_0", width: 96 },
  { kind, type: "Q4_1", width: 576 },
  { kind, type: "Q8_0", width: 75 },
  { kind, type: "Q8_0", width: 1536 },
])

describe.skipIf(!kernelsVersion()).each(cases)(
  "$kind of $width values before a product by $type",
  ({ kind, type, width }) => {
    let fused: Session
    let plain: Session
    beforeAll(async () => {
      fused = await openProduct(kind, type, width, true)
      plain = await openProduct(kind, type, width, false)
    })
    afterAll(async () => {
      await fused.release()
      await plain.release()
    })

    const columns = inputs[kind].halves * width
    const rows = inputRows(70, columns).map((row) => row.map((value) => value / 8))
    const feedsOf = (from: number, count: number): Readonly<Record<string, Tensor>> => {
      const joined = (part: readonly Float32Array[]) =>
        Float32Array.from(part.flatMap((row) => [...row]))
      const shape = [1, count, columns]
      const x = new Tensor("float32", joined(rows.slice(from, from + count)), shape)
      if (kind !== "sum and norm") return { x }
      const others = rows.slice(from, from + count).map((row) => row.toReversed())
      return { x, added: new Tensor("float32", joined(others), shape) }
    }
    const run = async (session: Session, from: number, count: number) => {
      const out = await session.run(feedsOf(from, count))
      const part = (name: string, size: number) =>
        Array.from({ length: count }, (_, i) =>
          (out[name]!.data as Float32Array).slice(i * size, (i + 1) * size),
        )
      return {
        y: part("y", outputs),
        ...(kind === "sum and norm" && session === fused && { total: part("total", width) }),
      }
    }

    test("is what nodes make of the rows", async () => {
      const [own, wanted] = [await run(fused, 0, 70), await run(plain, 0, 70)]
      for (const [n, row] of wanted.y.entries()) {
        const largest = Math.max(...row.map(Math.abs), 1e-30)
        const gap = Math.max(...row.map((value, i) => Math.abs(value - own.y[n]![i]!)))
        // a last bit of a row may be another level of 127
        expect(gap / largest).toBeLessThan(0.01)
      }
      for (const [n, row] of own.total?.entries() ?? [])
        expect(row).toEqual(rows[n]!.map((value, i) => value + rows[n]!.at(-1 - i)!))
    })

    test("has the same bits for a row alone and in any company", async () => {
      const together = await run(fused, 0, 70)
      for (const count of [1, 2, 3, 16, 33])
        for (let from = 0; from + count <= 70; from += count) {
          const some = await run(fused, from, count)
          expect(some.y).toEqual(together.y.slice(from, from + count))
          expect(some.total).toEqual(together.total?.slice(from, from + count))
        }
    })
  },
)
