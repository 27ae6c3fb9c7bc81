import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterAll, beforeAll, describe, expect, test } from "vitest"
import { inputRows, matrixOfType } from "../testing/products.ts"
import {
  adapterInputs,
  adapterNames,
  declareAdapters,
  productScale,
  scalesName,
  tileRanks,
} from "./adapter-inputs.ts"
import { writeGraph } from "./graph-cache.ts"
import { kernelsVersion } from "./kernels.ts"
import { linear } from "./linear.ts"
import { floats, openSession, type Session } from "./onnx-session.ts"

const folder = mkdtempSync(join(tmpdir(), "rakit-native-adapters-"))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

const [outputs, tokens] = [40, 3]
const group = { parts: ["q"] } as const
const names = adapterNames({ ...group, layer: 0, isJoined: true })

/** Rows of one sequence, and the adapter that it has, with its strength. */
interface Sequence {
  readonly rows: readonly Float32Array[]
  readonly adapter?: number
  readonly strength?: number
}

const wave = (length: number, seed: number) =>
  Float32Array.from({ length }, (_, i) => Math.sin(seed + i * i) / 8)

const cases = [
  { type: "Q8_0", width: 75 },
  { type: "Q4_1", width: 576 },
]

describe.skipIf(!kernelsVersion()).each(cases)(
  "adapters of a native product by $type of $width columns",
  ({ type, width }) => {
    let session: Session
    beforeAll(async () => {
      writeGraph(folder, { graph: `${type}.onnx`, weights: `${type}.bin` }, (graph) => {
        graph.input("x", "float", ["B", "S", width])
        const size = { rows: outputs, columns: width }
        const [, adapters] = [0, 1, 5].map((layer) =>
          adapterInputs(graph, { layer, parts: group.parts, ...size }, true),
        )
        declareAdapters(graph)
        const product = linear(graph, "x", matrixOfType(type, outputs, width), "auto", { adapters })
        graph.output("y", product, "float", ["B", "S", outputs])
        // all of it is one operator
        expect(graph.toBytes().includes("Add")).toBe(false)
      })
      session = await openSession(join(folder, `${type}.onnx`), 2)
    })
    afterAll(() => session.release())

    const adapters = [1, 2].map((tiles, n) => ({
      tiles,
      a: wave(tiles * width * tileRanks, 3 * n),
      b: wave(tiles * tileRanks * outputs, 3 * n + 1),
    }))
    const all = inputRows(8 * tokens, width).map((row) => row.map((value) => value / 100))
    const rowsOf = (n: number) => all.slice(n * tokens, (n + 1) * tokens)

    /** Runs sequences together; `order`: the adapters that are side by side. */
    const run = async (sequences: readonly Sequence[], order: readonly number[]) => {
      // the product is the second of three that share the inputs
      const joined = (part: "a" | "b") => {
        const own = order.flatMap((n) => [...adapters[n]![part]])
        const other = own.map(() => 9)
        return Float32Array.from([...other, ...own, ...other])
      }
      const tiles = order.reduce((sum, n) => sum + adapters[n]!.tiles, 0)
      const scales = sequences.flatMap(({ adapter, strength = 1 }) =>
        order.flatMap((n) =>
          new Array<number>(adapters[n]!.tiles * tileRanks).fill(n === adapter ? strength : 0),
        ),
      )
      const x = Float32Array.from(sequences.flatMap(({ rows }) => rows.flatMap((row) => [...row])))
      const { y } = await session.run({
        x: floats(x, [sequences.length, tokens, width]),
        [names.a]: floats(joined("a"), tiles ? [3, tiles, width, tileRanks] : [3, 1, width, 0]),
        [names.b]: floats(joined("b"), [3, tiles * tileRanks, outputs]),
        [scalesName("q")]: floats(Float32Array.from(scales), [
          sequences.length,
          1,
          tiles * tileRanks,
        ]),
      })
      const found = y!.data as Float32Array
      const length = tokens * outputs
      return sequences.map((_, n) => found.slice(n * length, (n + 1) * length))
    }

    const mixed: readonly Sequence[] = [
      { rows: rowsOf(0) },
      { rows: rowsOf(1), adapter: 0 },
      { rows: rowsOf(2), adapter: 1, strength: 0.5 },
      { rows: rowsOf(3) },
      { rows: rowsOf(4), adapter: 1 },
      { rows: rowsOf(5), adapter: 0, strength: -2 },
      { rows: rowsOf(6), adapter: 0, strength: 0 },
    ]

    test("add what the definition says", async () => {
      const bare = await run(
        mixed.map(({ rows }) => ({ rows })),
        [],
      )
      for (const [n, found] of (await run(mixed, [0, 1])).entries()) {
        const { rows, adapter, strength = 1 } = mixed[n]!
        const { a, b, tiles } = adapters[adapter ?? 0]!
        for (const [i, value] of found.entries()) {
          const row = rows[Math.floor(i / outputs)]!
          let [added, size] = [0, 1e-9]
          for (let rank = 0; rank < tiles * tileRanks; rank++) {
            const start = Math.floor(rank / tileRanks) * width
            let inner = 0
            for (const [c, x] of row.entries())
              inner += x * a[(start + c) * tileRanks + (rank % tileRanks)]!
            const term = inner * b[rank * outputs + (i % outputs)]! * productScale ** 2 * strength
            added += term
            size += Math.abs(term)
          }
          const exact = bare[n]![i]! + (adapter === undefined ? 0 : added)
          expect(Math.abs(value - exact)).toBeLessThan((size + Math.abs(exact)) * 1e-5)
        }
      }
    })

    test("leave rows without one as they are, and give the others the same bits in any company", async () => {
      const together = await run(mixed, [0, 1])
      expect(await run(mixed, [1, 0])).toEqual(together)
      for (const [n, sequence] of mixed.entries()) {
        const { adapter, strength } = sequence
        const alone = adapter === undefined || strength === 0 ? [] : [adapter]
        expect(await run([sequence], alone)).toEqual([together[n]])
      }
    })
  },
)
