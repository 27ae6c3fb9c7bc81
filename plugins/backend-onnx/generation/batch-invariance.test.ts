import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import fc from "fast-check"
import { afterAll, beforeAll, describe, expect, test } from "vitest"
import { runs } from "../../../testing/property.ts"
import type { Precision } from "../onnx/linear.ts"
import { roundedCapacity } from "../sessions/kv-bank.ts"
import { openDecoder } from "../sessions/open-decoder.ts"
import { channelPrecisions } from "../testing/channel-precisions.ts"
import { writeGguf } from "../testing/gguf-writer.ts"
import { contentsOf } from "../testing/kv-in-memory.ts"
import { tinyPrompt as prompt, tinyLlama } from "../testing/tiny-llama.ts"
import { CachedDecoder } from "./cached-decoder.ts"
import type { KvCache } from "./kv-cache.ts"

/** The same tokens have the same numbers, bit by bit, however they are computed. */

const root = mkdtempSync(join(tmpdir(), "rakit-same-"))
afterAll(() => rmSync(root, { recursive: true, force: true }))

const bitsOf = (values: Float32Array | Uint16Array): Buffer =>
  Buffer.from(Uint8Array.from(new Uint8Array(values.buffer, values.byteOffset, values.byteLength)))

const grouped = {}
const everyHeadItsOwn = { kvHeads: 4 }

describe.each([
  ["int8", "heads in groups", grouped],
  ...channelPrecisions.map((precision) => [precision, "heads in groups", grouped] as const),
  ["int4", "heads in groups", grouped],
  ["fp32", "heads in groups", grouped],
  ["int4", "every head with keys of its own", everyHeadItsOwn],
  ["fp32", "every head with keys of its own", everyHeadItsOwn],
] as const)("%s, %s", (precision: Precision, name, shape) => {
  let session: CachedDecoder
  let close: () => Promise<void>
  beforeAll(async () => {
    const path = join(root, `${precision}-${name}.gguf`)
    writeFileSync(path, writeGguf(tinyLlama(6, { ...shape, contextTokens: 1024 })))
    const spec = { path, graphs: join(root, "graphs"), precision, threads: 2 }
    const { session: decoder } = await openDecoder(spec, () => {})
    session = new CachedDecoder(decoder)
    close = () => decoder.close()
  })
  afterAll(() => close())

  /** Keys and values of all tokens, and the logits behind the last one. */
  const read = async (ids: Int32Array, cuts: readonly number[] = []) => {
    const cache = session.newCache()
    let logits = new Float32Array()
    for (const end of [...cuts, ids.length])
      logits = (await session.forward(cache, ids.subarray(cache.length, end), true)).slice()
    return { cache, bits: bitsOf(logits) }
  }
  const keysAndValues = (cache: KvCache): Buffer => bitsOf(contentsOf(cache))

  test("in chunks of any size", async () => {
    const cutsOf = (length: number) =>
      fc.uniqueArray(fc.integer({ min: 1, max: length - 1 }), { maxLength: 12 })
    const text = fc
      .integer({ min: 2, max: 300 })
      .chain((length) => fc.tuple(fc.constant(length), cutsOf(length)))
    await fc.assert(
      fc.asyncProperty(text, async ([length, cuts]) => {
        const ids = prompt(length)
        const [whole, cut] = [
          await read(ids),
          await read(
            ids,
            cuts.sort((a, b) => a - b),
          ),
        ]
        expect(cut.bits.equals(whole.bits)).toBe(true)
        expect(keysAndValues(cut.cache).equals(keysAndValues(whole.cache))).toBe(true)
      }),
      { numRuns: runs(8) },
    )
  })

  test("among 0 to 15 others of any length, in a bank of any size, at any place", async () => {
    const company = fc.record({
      length: fc.integer({ min: 1, max: 300 }),
      others: fc.array(fc.integer({ min: 1, max: 500 }), { maxLength: 15 }),
      place: fc.nat(15),
      spare: fc.constantFrom(0, 128, 512),
    })
    await fc.assert(
      fc.asyncProperty(company, async ({ length, others, place, spare }) => {
        const rows: KvCache[] = []
        for (const tokens of others) rows.push((await read(prompt(tokens, tokens))).cache)
        const own = (await read(prompt(length))).cache
        const next = 17
        const alone = session.newCache()
        alone.copyFrom(own)
        const wanted = bitsOf(await session.forward(alone, [next], true))
        rows.splice(place, 0, own)
        const capacity = roundedCapacity(Math.max(...rows.map((row) => row.length)) + 1) + spare
        const bank = own.bank.another(rows.length, capacity)
        for (const [index, row] of rows.entries()) row.moveTo(bank, index)
        const got = await session.decode(
          rows,
          rows.map((row, i) => (row === own ? next : 30 + i)),
        )
        expect(bitsOf(got[rows.indexOf(own)]!).equals(wanted)).toBe(true)
        expect(keysAndValues(own).equals(keysAndValues(alone))).toBe(true)
      }),
      { numRuns: runs(8) },
    )
  })

  test("as draft tokens and one by one", async () => {
    const ids = prompt(150)
    const { cache } = await read(ids.subarray(0, 143))
    const drafted = await session.verifyDrafts(cache, [...ids.subarray(143)])
    const bits = drafted.logits.map(bitsOf)
    drafted.keep(7)
    for (const [i, own] of bits.entries())
      expect(own.equals((await read(ids.subarray(0, 144 + i))).bits)).toBe(true)
    expect(keysAndValues(cache).equals(keysAndValues((await read(ids)).cache))).toBe(true)
  })
})
