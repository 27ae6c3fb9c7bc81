import { spawnSync } from "node:child_process"
import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { afterAll, describe, expect, test } from "vitest"
import type { GraphBuilder } from "../../plugins/backend-onnx/onnx/graph-builder.ts"
import { writeGraph } from "../../plugins/backend-onnx/onnx/graph-cache.ts"
import { noDevice, settingsOf } from "./test-device.ts"

/**
 * What keys and values on a GPU can be built on, as ONNX Runtime has it: GroupQueryAttention writes
 * into the buffer that it reads, so that a cache stays where it is.
 */

const [heads, kvHeads, headSize, capacity] = [4, 2, 8, 32]
const bank = [4, kvHeads, capacity, headSize]

const root = mkdtempSync(join(tmpdir(), "rakit-in-place-"))
afterAll(() => rmSync(root, { recursive: true, force: true }))

const written = (name: string, build: (graph: GraphBuilder) => void): string => {
  writeGraph(root, { graph: `${name}.onnx`, weights: `${name}.bin` }, build)
  return join(root, `${name}.onnx`)
}

const attend = (graph: GraphBuilder, window: number): void => {
  graph.input("q", "float", ["B", "S", heads * headSize])
  for (const part of ["k", "v"]) {
    graph.input(part, "float", ["B", "S", kvHeads * headSize])
    graph.input(`past_${part}`, "float", ["B", kvHeads, "P", headSize])
  }
  graph.input("last", "int64", ["B"])
  graph.input("longest", "int64", [1])
  const int32 = (value: string) => graph.node("Cast", [value], { attributes: { to: 6 } })
  const outputs = graph.nodeWith(
    "GroupQueryAttention",
    ["q", "k", "v", "past_k", "past_v", int32("last"), int32("longest")],
    ["attended", "keys", "values"],
    {
      attributes: { num_heads: heads, kv_num_heads: kvHeads, local_window_size: window },
      domain: "com.microsoft",
    },
  )
  graph.output("out", outputs[0]!, "float", ["B", "S", heads * headSize])
  graph.output("present_k", outputs[1]!, "float", ["B", kvHeads, "P", headSize])
  graph.output("present_v", outputs[2]!, "float", ["B", kvHeads, "P", headSize])
}

const numbers = (length: number, seed: number): number[] =>
  Array.from({ length }, (_, i) => Math.sin(i * 12.9898 + seed * 78.233))

/** Chunks of one row, then tokens of rows of different lengths, then of fewer rows. */
const passes = [
  [1, 7],
  [1, 6],
  [1, 1],
  [3, 1],
  [3, 1],
  [2, 1],
] as const

/** Grouped-query attention, written out; it keeps keys and values `[row][position]`. */
class Reference {
  readonly rows: { k: number[]; v: number[] }[][] = bank
    .slice(0, 1)
    .flatMap((count) => Array.from({ length: count }, () => []))

  lengths(rows: number): number[] {
    return this.rows.slice(0, rows).map((row) => row.length)
  }

  /** The output of one query of a row, whose own key and value are its last. */
  attend(row: number, q: readonly number[], window: number): number[] {
    const seen = window > 0 ? this.rows[row]!.slice(-window) : this.rows[row]!
    return Array.from({ length: heads }, (_, head) => {
      const at = Math.floor((head * kvHeads) / heads) * headSize
      const own = q.slice(head * headSize, (head + 1) * headSize)
      const scores = seen.map(({ k }) =>
        own.reduce((sum, value, i) => sum + (value * k[at + i]!) / Math.sqrt(headSize), 0),
      )
      const weights = scores.map((score) => Math.exp(score - Math.max(...scores)))
      const total = weights.reduce((sum, weight) => sum + weight, 0)
      return own.map((_, i) =>
        seen.reduce((sum, { v }, j) => sum + (weights[j]! / total) * v[at + i]!, 0),
      )
    }).flat()
  }
}

const part = (values: readonly number[], index: number, of: number): number[] =>
  values.slice((index * values.length) / of, ((index + 1) * values.length) / of)

const run = (window: number) => {
  const reference = new Reference()
  const wanted: number[][] = []
  const steps = passes.map(([rows, count], seed) => {
    const all = rows * count
    const lengths = reference.lengths(rows)
    const q = numbers(all * heads * headSize, seed)
    const [k, v] = [1, 2].map((kind) => numbers(all * kvHeads * headSize, seed + 10 * kind))
    const out: number[] = []
    for (let i = 0; i < all; i++) {
      const row = Math.floor(i / count)
      reference.rows[row]!.push({ k: part(k!, i, all), v: part(v!, i, all) })
      out.push(...reference.attend(row, part(q, i, all), window))
    }
    wanted.push(out)
    return { rows, count, lengths, q, k, v }
  })
  const graphs = {
    zeros: written(`zeros${window}`, (graph) => {
      graph.input("shape", "int64", ["N"])
      const zeros = graph.node("Expand", [graph.floats(0), "shape"])
      graph.output("zeros", zeros, "float", ["A", "B", "C", "D"])
    }),
    attend: written(`attend${window}`, (graph) => attend(graph, window)),
    copyOut: written(`copy${window}`, (graph) => {
      graph.input("x", "float", ["A", "B", "C", "D"])
      const copy = graph.node("Mul", ["x", graph.floats(1)])
      graph.output("copy", copy, "float", ["A", "B", "C", "D"])
    }),
  }
  const task = join(root, `task${window}.json`)
  writeFileSync(task, JSON.stringify({ graphs, bank, steps }))
  const { driver } = settingsOf({})
  const child = fileURLToPath(new URL("./attend-in-place.mjs", import.meta.url))
  const ran = spawnSync(process.execPath, [child, task], {
    encoding: "utf8",
    env: { ...process.env, ...(driver && { VK_DRIVER_FILES: driver, VK_ICD_FILENAMES: driver }) },
  })
  if (ran.status !== 0) throw new Error(ran.stderr)
  const got = JSON.parse(ran.stdout) as {
    readonly location: string
    readonly outputs: readonly (readonly number[])[]
    readonly keys: readonly number[]
  }
  return { reference, wanted, got }
}

describe.skipIf(noDevice)(
  "attention over keys and values that stay in a buffer of the GPU",
  { timeout: 120_000 },
  () => {
    test.each([
      ["all positions", -1],
      ["a sliding window", 5],
    ])(
      "of %s: chunks, and steps of rows of different lengths",
      (_, window) => {
        const { reference, wanted, got } = run(window)
        expect(got.location).toBe("gpu-buffer")
        for (const [step, values] of wanted.entries())
          for (const [i, value] of values.entries())
            expect(got.outputs[step]![i]).toBeCloseTo(value, 5)
        for (const [row, cached] of reference.rows.entries())
          for (let at = 0; at < capacity; at++)
            for (let i = 0; i < kvHeads * headSize; i++) {
              const head = row * kvHeads + Math.floor(i / headSize)
              const found = got.keys[(head * capacity + at) * headSize + (i % headSize)]
              expect(found).toBe(Math.fround(cached[at]?.k[i] ?? 0))
            }
      },
      60_000,
    )
  },
)
