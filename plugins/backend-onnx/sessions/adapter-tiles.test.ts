import { expect, test } from "vitest"
import type { LowRankPair } from "../architectures/adapter-file.ts"
import { kindOf } from "../onnx/adapter-inputs.ts"
import { type GroupSize, sideBySide, tiled, tileLayout } from "./adapter-tiles.ts"

const sizes: readonly GroupSize[] = [
  { layer: 0, isJoined: false, parts: ["q", "k", "v"], columns: 4, partRows: [4, 4, 4], rows: 12 },
]

const adapter = (id: string, rank: number, parts: readonly ("q" | "k" | "v")[]) => {
  const ones = () => new Float32Array(4 * rank).fill(1)
  const pairs = parts.map((part): LowRankPair => ({ layer: 0, part, rank, a: ones(), b: ones() }))
  return tiled(id, pairs, tileLayout(pairs, sizes))
}

test("adapters side by side take no more memory than they do alone, each at its alignment", () => {
  const adapters = [
    adapter("a", 8, ["q"]),
    adapter("b", 128, ["q"]),
    adapter("c", 40, ["q", "k", "v"]),
    adapter("d", 8, ["q", "v"]),
    adapter("e", 256, ["v"]),
    adapter("f", 20, ["k"]),
  ]
  const { kinds, groups } = sideBySide(adapters, sizes)
  const kind = kindOf(sizes[0]!)
  const { tiles, runs } = kinds.get(kind)!
  const bytesIn = (own: typeof groups) =>
    own.reduce((sum, { a, b }) => sum + a.byteLength + b.byteLength, 0)
  for (const one of adapters) expect(one.bytes).toBe(bytesIn(one.groups))
  expect(bytesIn(groups)).toBe(adapters.reduce((sum, one) => sum + one.bytes, 0))
  const taken = new Set<number>()
  for (const { id, runs: own } of adapters) {
    const { first, count } = runs.get(id)!
    expect([id, first % own.get(kind)!.alignment]).toEqual([id, 0])
    for (let at = first; at < first + count; at++) taken.add(at)
  }
  expect(taken.size).toBe(tiles)
  // a block of 16 tiles, as ONNX Runtime takes for few rows, would end within it
  expect(runs.get("e")!.first % 16).toBe(0)
})
