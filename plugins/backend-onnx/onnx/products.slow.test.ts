import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest"
import { matrixOfType } from "../testing/products.ts"
import type { Building } from "./building.ts"
import { GraphBuilder } from "./graph-builder.ts"
import { writeGraph } from "./graph-cache.ts"
import { kernelsVersion } from "./kernels.ts"
import { openSession, type Session } from "./onnx-session.ts"
import { gatedProducts } from "./products.ts"
import { Tensor } from "./runtime.ts"
import { WeightStore } from "./weight-store.ts"

const folder = mkdtempSync(join(tmpdir(), "rakit-products-"))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

type Activation = Building["config"]["activation"]

/** A part of a model that has nothing but a graph and an activation. */
const building = (
  graph: GraphBuilder,
  activation: Activation,
  precision: Building["precision"] = "auto",
) => ({ graph, config: { activation }, precision }) as Building

/** The graph's operators of a gated unit of matrices of these types. */
const operatorsOf = (
  types: readonly [string, string],
  kernels: boolean,
  precision?: Building["precision"],
) => {
  const file = `${types}-${kernels}-${precision}.bin`
  const graph = new GraphBuilder(new WeightStore(folder, file), "cpu", kernels)
  const nodes = vi.spyOn(graph, "nodeWith")
  const [gate, up] = types.map((type) => matrixOfType(type, 16, 32))
  const unit = gatedProducts(
    building(graph, "silu", precision),
    [gate!, up!],
    ({ rows }) => `x${rows}`,
  )
  const value = unit.value()
  graph.store.close()
  expect(nodes.mock.calls.at(-1)![2]).toEqual([value])
  return nodes.mock.calls.map(([op]) => op)
}

test("only one product of both, in a graph with native kernels, goes to the native operator", () => {
  expect(operatorsOf(["Q4_0", "Q4_0"], true)).toEqual(["GatedUnit"])
  expect(operatorsOf(["IQ4_NL", "IQ4_NL"], true)).toEqual(["GatedUnit"])
  expect(operatorsOf(["Q4_0", "Q8_0"], true, "int4")).toEqual(["GatedUnit"])
  expect(operatorsOf(["Q4_0", "IQ4_NL"], true, "int4")).toEqual(["QuickGelu", "Mul"])
  expect(operatorsOf(["Q4_0", "IQ4_NL"], false, "int4")).toEqual(["Split", "QuickGelu", "Mul"])
  for (const other of ["Q8_0", "IQ4_NL", "Q5_0"])
    expect(operatorsOf(["Q4_0", other], true)).toEqual(["QuickGelu", "Mul"])
  expect(operatorsOf(["Q4_0", "Q4_0"], false)).toEqual(["Split", "QuickGelu", "Mul"])
})

/** What the sigmoid is taken of. */
const arguments_ = {
  silu: (x: number) => x,
  gelu: (x: number) => 2 * Math.sqrt(2 / Math.PI) * (x + 0.044715 * x ** 3),
}

describe
  .skipIf(!kernelsVersion())
  .each(
    (["silu", "gelu"] as const).flatMap((activation) =>
      [1, 16, 75, 1536].map((width) => ({ activation, width })),
    ),
  )("the native gated unit of $activation, $width wide", ({ activation, width }) => {
  let session: Session
  beforeAll(async () => {
    const name = `${activation}-${width}`
    writeGraph(folder, { graph: `${name}.onnx`, weights: `${name}.bin` }, (graph) => {
      graph.input("x", "float", ["B", "S", 2 * width])
      const matrix = matrixOfType("Q4_0", width, 32)
      const unit = gatedProducts(building(graph, activation), [matrix, matrix], () => "x")
      graph.output("y", unit.value(), "float", ["B", "S", width])
    })
    session = await openSession(join(folder, `${name}.onnx`), 2)
  })
  afterAll(() => session.release())

  /** Gates in random order, from the smallest to those whose sigmoid is 0 or 1. */
  const inputs = Array.from({ length: 64 }, (_, n) =>
    Float32Array.from(
      { length: 2 * width },
      (_, i) => 10 ** ((n % 7) / 2 - 2) * Math.cos(n * 977 + i * i),
    ),
  )
  const run = async (rows: readonly Float32Array[]) => {
    const x = new Float32Array(rows.length * 2 * width)
    for (const [i, row] of rows.entries()) x.set(row, i * 2 * width)
    const { y } = await session.run({ x: new Tensor("float32", x, [1, rows.length, 2 * width]) })
    expect(y!.dims).toEqual([1, rows.length, width])
    return rows.map((_, i) => (y!.data as Float32Array).slice(i * width, (i + 1) * width))
  }
  const wanted = (gate: number, up: number) =>
    (gate * up) / (1 + Math.exp(-arguments_[activation](gate)))

  test("has the numbers of the definition", async () => {
    let worst = 0
    for (const [n, row] of (await run(inputs)).entries())
      for (const [i, found] of row.entries()) {
        const [gate, up] = [inputs[n]![i]!, inputs[n]![width + i]!]
        const exact = wanted(gate, up)
        // an error of the argument, which has rounding errors for GELU, is a relative one of e^x
        const slack = activation === "gelu" ? Math.max(1, -arguments_.gelu(gate)) : 1
        worst = Math.max(worst, Math.abs(found - exact) / (Math.abs(exact) * slack + 1e-35))
      }
    expect(worst).toBeLessThan(5e-7)
  })

  test("has limits where the gate is huge, and NaN where it is", async () => {
    const gates = [100, 1e4, 1e30, Infinity, 0, -100, -1e4, -1e30, -Infinity, Number.NaN]
    const rows = gates.map((gate) =>
      new Float32Array(2 * width).fill(gate, 0, width).fill(2, width),
    )
    for (const [n, row] of (await run(rows)).entries()) {
      const gate = rows[n]![0]!
      const exact = Number.isNaN(gate) ? gate : Math.max(0, 2 * gate)
      // plus 0: a zero has no sign here
      expect(row.map((value) => (Math.abs(value) < 1e-35 ? 0 : value))).toEqual(
        new Float32Array(width).fill(exact),
      )
    }
  })

  test("has the same bits for a row alone and in any company, and for a value in any place", async () => {
    const together = await run(inputs)
    for (const count of [1, 3, 17])
      for (let from = 0; from + count <= inputs.length; from += count)
        expect(await run(inputs.slice(from, from + count))).toEqual(
          together.slice(from, from + count),
        )
    const mirrored = inputs.map((row) =>
      Float32Array.of(...row.slice(0, width).reverse(), ...row.slice(width).reverse()),
    )
    expect((await run(mirrored)).map((row) => row.reverse())).toEqual(together)
  })
})
