import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterAll, describe, expect, test } from "vitest"
import { halfAt, toHalves } from "../weights/float16.ts"
import type { Building } from "./building.ts"
import { writeGraph } from "./graph-cache.ts"
import { kernelsVersion } from "./kernels.ts"
import { declareBanks, nativeAttention } from "./native-attention.ts"
import { openSession, type Session } from "./onnx-session.ts"
import { Tensor } from "./runtime.ts"

const folder = mkdtempSync(join(tmpdir(), "rakit-native-attention-"))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

const [rows, chunk, kvHeads, capacity, positions] = [2, 3, 2, 80, 200]
const pastLengths = [70, 5]
/** The first sequence is the bank's second row, and the other way round. */
const pastRows = [1, 0]
const scale = 0.2
const epsilon = 1e-5

interface Case {
  readonly heads: number
  readonly headSize: number
  /** Dimensions that are rotated; 0: none. */
  readonly rotated: number
  readonly headNorms: boolean
  readonly window?: number
}

const noise = (seed: number, length: number) =>
  Float32Array.from({ length }, (_, i) => Math.sin(seed * 977 + i * 12.9898) * 1.5)
const halves = (values: Float32Array) => {
  const bits = new Uint16Array(values.length)
  toHalves(values, bits)
  return bits
}
const valuesOf = (bits: Uint16Array) =>
  Float32Array.from(bits, (_, i) => halfAt(new Uint8Array(bits.buffer, bits.byteOffset), 2 * i))

const normOf = (part: string, size: number) =>
  Float32Array.from({ length: size }, (_, i) => 1 + ((i + part.length) % 5) / 10)
const angle = (position: number, pair: number) => position / 10 ** (pair / 8)

let graphs = 0

/** A graph of one attention, whose products are split as `parts` says. */
const open = async (of: Case, parts: readonly number[]): Promise<Session> => {
  const { heads, headSize, rotated, headNorms, window } = of
  const name = `graph-${graphs++}`
  writeGraph(folder, { graph: `${name}.onnx`, weights: `${name}.bin` }, (graph) => {
    const config = {
      heads,
      kvHeads,
      headSize,
      headNorms,
      layers: 1,
      windows: [window],
      attentionScale: scale,
      normEpsilon: epsilon,
    }
    const weights = { norm: (_: number, part: string) => normOf(part, headSize) }
    const building = { graph, config, weights } as unknown as Building
    declareBanks(building)
    graph.input("past_lens", "int64", ["B"])
    graph.input("positions", "int64", ["B", "S"])
    for (const [i, columns] of parts.entries()) graph.input(`p${i}`, "float", ["B", "S", columns])
    const pairs = rotated / 2
    for (const [table, wave] of [
      ["cos", Math.cos],
      ["sin", Math.sin],
    ] as const) {
      const region = graph.weights(table, "float", [positions, pairs || 1])
      const values = Float32Array.from({ length: positions * (pairs || 1) }, (_, i) =>
        wave(angle(Math.floor(i / (pairs || 1)), i % (pairs || 1))),
      )
      graph.store.write(region, 0, values)
    }
    const tables = { cos: "cos", sin: "sin", dimensions: rotated }
    const { attended, fresh } = nativeAttention(building, {
      layer: 0,
      products: { groups: parts.map((_, i) => `p${i}`), apart: () => [] },
      rotation: rotated > 0 ? { tables, positions: "positions" } : undefined,
    })
    graph.output("attended", attended, "float", ["B", "S", heads * headSize])
    graph.output("fresh", fresh, "uint16", [2, "B", "S", kvHeads * headSize])
  })
  return openSession(join(folder, `${name}.onnx`), 2)
}

const columnsOf = ({ heads, headSize }: Case) => (heads + 2 * kvHeads) * headSize

const run = async (of: Case, parts: readonly number[], steps = chunk) => {
  const session = await open(of, parts)
  const all = columnsOf(of)
  const ofAll = noise(1, rows * chunk * all)
  // the first tokens of each sequence's chunk
  const products = Float32Array.from({ length: rows * steps * all }, (_, i) => {
    const [row, at] = [Math.floor(i / (steps * all)), i % (steps * all)]
    return ofAll[row * chunk * all + at]!
  })
  const bank = halves(noise(2, 2 * rows * kvHeads * capacity * of.headSize))
  const longs = (values: readonly number[], shape: readonly number[]) =>
    new Tensor("int64", BigInt64Array.from(values, BigInt), shape)
  let from = 0
  const feeds: Record<string, Tensor> = {
    "past.0": new Tensor("uint16", bank, [2, rows, kvHeads, capacity, of.headSize]),
    past_lens: longs(pastLengths, [rows]),
    past_rows: longs(pastRows, [rows]),
    positions: longs(
      pastLengths.flatMap((past) => Array.from({ length: steps }, (_, i) => past + i)),
      [rows, steps],
    ),
  }
  for (const [i, columns] of parts.entries()) {
    const start = from
    const part = Float32Array.from(
      { length: rows * steps * columns },
      (_, at) => products[Math.floor(at / columns) * all + start + (at % columns)]!,
    )
    feeds[`p${i}`] = new Tensor("float32", part, [rows, steps, columns])
    from += columns
  }
  const names = new Set(session.inputs.map(({ name }) => name))
  const given = Object.fromEntries(Object.entries(feeds).filter(([name]) => names.has(name)))
  const { attended, fresh } = await session.run(given)
  const found = {
    attended: (attended!.data as Float32Array).slice(),
    fresh: (fresh!.data as Uint16Array).slice(),
  }
  await session.release()
  return { found, products, bank: valuesOf(bank) }
}

/** A head after its norm and rotation, by the definitions. */
const turned = (head: readonly number[], part: string, position: number, of: Case) => {
  const { headSize, rotated, headNorms } = of
  const mean = head.reduce((sum, value) => sum + value * value, 0) / headSize
  const weights = normOf(part, headSize)
  const normed = head.map((value, i) =>
    headNorms ? (value / Math.sqrt(mean + epsilon)) * weights[i]! : value,
  )
  const pairs = rotated / 2
  return normed.map((value, i) => {
    if (i >= rotated) return value
    const turn = angle(position, i % pairs)
    const other = i < pairs ? -normed[i + pairs]! : normed[i - pairs]!
    return value * Math.cos(turn) + other * Math.sin(turn)
  })
}

type Result = Awaited<ReturnType<typeof run>>

/** New keys and values of a token, by the definitions. */
const freshOf = (of: Case, { products }: Result, row: number, step: number, kv: number) => {
  const { heads, headSize } = of
  const at = (row * chunk + step) * columnsOf(of)
  const head = (index: number) => [
    ...products.slice(at + index * headSize, at + (index + 1) * headSize),
  ]
  const position = pastLengths[row]! + step
  return {
    keys: turned(head(heads + kv), "keys", position, of),
    values: head(heads + kvHeads + kv),
    queryOf: (index: number) => turned(head(index), "queries", position, of),
  }
}

/** What a query attends to, by the definition. */
const attendedOf = (of: Case, result: Result, row: number, step: number, head: number) => {
  const { heads, headSize, window = Number.POSITIVE_INFINITY } = of
  const kv = Math.floor(head / (heads / kvHeads))
  const past = pastLengths[row]!
  const query = freshOf(of, result, row, step, kv).queryOf(head)
  const cached = (kind: number, position: number) => {
    const at = (((kind * rows + pastRows[row]!) * kvHeads + kv) * capacity + position) * headSize
    return [...result.bank.slice(at, at + headSize)]
  }
  const seen = Array.from({ length: past + step + 1 }, (_, position) => position)
    .filter((position) => position > past + step - window)
    .map((position) =>
      position < past
        ? { keys: cached(0, position), values: cached(1, position) }
        : freshOf(of, result, row, position - past, kv),
    )
  const weights = seen.map(({ keys }) =>
    Math.exp(scale * keys.reduce((sum, key, i) => sum + key * query[i]!, 0)),
  )
  const total = weights.reduce((sum, weight) => sum + weight, 0)
  return query.map((_, i) =>
    seen.reduce((sum, { values }, n) => sum + (weights[n]! / total) * values[i]!, 0),
  )
}

// as many queries share a head of keys in each of the three steps as there are heads for it; with more
// than 16 of them keys are packed
const cases: readonly Case[] = [
  { heads: 4, headSize: 64, rotated: 64, headNorms: false },
  { heads: 4, headSize: 64, rotated: 64, headNorms: true, window: 20 },
  { heads: 4, headSize: 40, rotated: 40, headNorms: true },
  { heads: 2, headSize: 64, rotated: 48, headNorms: false },
  { heads: 2, headSize: 96, rotated: 96, headNorms: false },
  { heads: 6, headSize: 64, rotated: 64, headNorms: false },
  { heads: 14, headSize: 128, rotated: 128, headNorms: true },
  { heads: 6, headSize: 20, rotated: 6, headNorms: true },
  { heads: 4, headSize: 24, rotated: 0, headNorms: false },
]

describe.skipIf(!kernelsVersion()).each(cases)("native attention of %o", (of) => {
  const all = columnsOf(of)
  const kvWidth = kvHeads * of.headSize

  test("has the numbers of the definition", async () => {
    const result = await run(of, [all])
    const fresh = valuesOf(result.found.fresh)
    const bound = 4e-3
    for (let row = 0; row < rows; row++)
      for (let step = 0; step < chunk; step++) {
        const token = row * chunk + step
        for (let kv = 0; kv < kvHeads; kv++) {
          const wanted = freshOf(of, result, row, step, kv)
          for (const [kind, values] of [wanted.keys, wanted.values].entries())
            for (const [i, value] of values.entries()) {
              const at = (kind * rows * chunk + token) * kvWidth + kv * of.headSize + i
              expect(Math.abs(fresh[at]! - value)).toBeLessThan(bound)
            }
        }
        for (let head = 0; head < of.heads; head++)
          for (const [i, value] of attendedOf(of, result, row, step, head).entries()) {
            const at = (token * of.heads + head) * of.headSize + i
            expect(Math.abs(result.found.attended[at]! - value)).toBeLessThan(bound)
          }
      }
  })

  test("has the same bits by one product, by two and by three", async () => {
    const { found } = await run(of, [all])
    for (const parts of [
      [all - 2 * kvWidth, kvWidth, kvWidth],
      [all - kvWidth, kvWidth],
      [all - 2 * kvWidth, 2 * kvWidth],
    ])
      expect((await run(of, parts)).found).toEqual(found)
  })

  test("has the same bits for a token alone as for the first of a chunk", async () => {
    const [first, ofChunk] = [await run(of, [all], 1), await run(of, [all])]
    const width = of.heads * of.headSize
    for (let row = 0; row < rows; row++) {
      const inChunk = row * chunk * width
      expect(first.found.attended.slice(row * width, (row + 1) * width)).toEqual(
        ofChunk.found.attended.slice(inChunk, inChunk + width),
      )
    }
  })

  test("refuses products whose columns are not those of heads", async () => {
    await expect(run(of, [all - kvWidth - 4, kvWidth + 4])).rejects.toThrow(
      "a product ends within queries, keys or values",
    )
  })
})
