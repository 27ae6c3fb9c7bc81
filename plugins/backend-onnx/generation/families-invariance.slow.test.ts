import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterAll, describe, expect, test } from "vitest"
import { roundedCapacity } from "../sessions/kv-bank.ts"
import { openDecoder } from "../sessions/open-decoder.ts"
import { channelPrecisions } from "../testing/channel-precisions.ts"
import { fixtureFolder } from "../testing/fixtures.ts"
import { CachedDecoder } from "./cached-decoder.ts"
import type { KvCache } from "./kv-cache.ts"

const root = mkdtempSync(join(tmpdir(), "rakit-families-"))
afterAll(() => rmSync(root, { recursive: true, force: true }))

const length = 90
const ids = Int32Array.from({ length }, (_, i) => 10 + ((i * 7919 + i * i) % 290))
const others = [1, 7, 40, 120]

describe.each(["gemma3", "smollm3", "phi3", "phi4-mini", "qwen3-moe"])(
  "%s: a token has the same bits in any chunks and any company",
  (name) => {
    test.each(["fp32", "int8", ...channelPrecisions, "int4"] as const)("%s", async (precision) => {
      const { session: decoder } = await openDecoder(
        { path: fixtureFolder(name), graphs: join(root, "graphs"), precision, threads: 2 },
        () => {},
      )
      const session = new CachedDecoder(decoder)
      const read = async (tokens: Int32Array, cuts: readonly number[] = []) => {
        const cache = session.newCache(1, { reach: length })
        let logits = new Float32Array()
        for (const end of [...cuts, tokens.length])
          logits = (await session.forward(cache, tokens.subarray(cache.length, end), true)).slice()
        return { cache, logits }
      }
      const whole = await read(ids)
      for (const cuts of [
        [1],
        [64],
        [1, 2, 3, 50, 89],
        Array.from({ length: 89 }, (_, i) => i + 1),
      ])
        expect((await read(ids, cuts)).logits).toEqual(whole.logits)
      const rows: KvCache[] = [(await read(ids.subarray(0, 89))).cache]
      for (const count of others) rows.push((await read(ids.map((id) => id + count))).cache)
      for (const [i, count] of others.entries()) rows[i + 1]!.rewind(count)
      for (const company of [rows.slice(0, 2), rows]) {
        const bank = company[0]!.bank.another(company.length, roundedCapacity(160))
        for (const [index, row] of company.entries()) row.moveTo(bank, index)
        const next = company.map((_, i) => (i ? 20 + i : ids[89]!))
        const [own] = await session.decode(company, next)
        expect(own).toEqual(whole.logits)
        rows[0]!.rewind(89)
      }
      await decoder.close()
    })
  },
)
