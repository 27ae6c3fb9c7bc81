import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import fc from "fast-check"
import { afterAll, beforeAll, describe, expect, test } from "vitest"
import { runs } from "../../../testing/property.ts"
import { openDecoder } from "../sessions/open-decoder.ts"
import { writeGguf } from "../testing/gguf-writer.ts"
import { tinyPrompt as prompt, tinyLlama } from "../testing/tiny-llama.ts"
import { CachedDecoder } from "./cached-decoder.ts"
import { DecodeBanks } from "./decode-banks.ts"
import type { KvCache } from "./kv-cache.ts"
import { type Ask, openInProcess } from "./testing/in-process.ts"

const root = mkdtempSync(join(tmpdir(), "rakit-batch-"))
const path = join(root, "tiny.gguf")
const content = tinyLlama(4)
writeFileSync(
  path,
  writeGguf({ ...content, metadata: { ...content.metadata, "llama.context_length": 4096 } }),
)
const graphs = join(root, "graphs")
afterAll(() => rmSync(root, { recursive: true, force: true }))

const noEnd = {
  frequencyPenalty: 0,
  presencePenalty: 0,
  topP: 1,
  logitBias: [[1, -100] as const, [2, -100] as const],
}
const greedy = { ...noEnd, temperature: 0 }
const hot = { ...noEnd, temperature: 1 }

type Engine = Awaited<ReturnType<typeof openInProcess>>

describe("one step for many rows", () => {
  const gap = (a: Float32Array, b: Float32Array) =>
    a.reduce((most, value, i) => Math.max(most, Math.abs(value - b[i]!)), 0)

  test.each([
    ["fp32", 1e-4],
    ["int8", 0.05],
  ] as const)(
    "answers what single ones answer, whatever the lengths of the rows (%s)",
    async (precision, tolerance) => {
      const { session: decoder } = await openDecoder(
        { path, graphs, precision, threads: 1 },
        () => {},
      )
      const session = new CachedDecoder(decoder)
      const lengths = [1, 3, 63, 64, 127, 128, 200, 300]
      const read = async (length: number, seed: number): Promise<KvCache> => {
        const cache = session.newCache()
        await session.forward(cache, prompt(length, seed), false)
        return cache
      }
      const rows = []
      for (const [i, length] of lengths.entries())
        rows.push({ cache: await read(length, i), alone: await read(length, i), ended: false })
      const banks = new DecodeBanks<(typeof rows)[number]>()
      for (let step = 0; step < 4; step++)
        for (const group of banks.arrange(rows)) {
          expect(group).toHaveLength(lengths.length)
          const ids = group.map((_, i) => 10 + i + step)
          const decoded = await session.decode(
            group.map((row) => row.cache),
            ids,
          )
          const together = decoded.map((logits) => logits!.slice())
          for (const [i, row] of group.entries())
            expect(
              gap(together[i]!, await session.forward(row.alone, [ids[i]!], true)),
            ).toBeLessThan(tolerance)
        }
      await decoder.close()
    },
  )
})

describe("requests together", () => {
  let engine: Engine
  let unspeculative: Engine
  beforeAll(async () => {
    engine = await openInProcess({ path, graphs })
    unspeculative = await openInProcess({ path, graphs, speculation: false, prefixCacheBytes: 0 })
  })
  afterAll(async () => {
    await engine.close()
    await unspeculative.close()
  })
  const alone = async (ask: Ask) => (await unspeculative.ask(ask)).text

  test("say what they say alone, at every border of chunks and banks", async () => {
    const asks = [1, 15, 16, 17, 63, 64, 65, 127, 128, 129, 191, 192, 193].map((length) => ({
      promptIds: prompt(length, length),
      sampler: greedy,
      maxTokens: 10,
    }))
    const together = await Promise.all(asks.map((ask) => engine.ask(ask)))
    for (const [i, ask] of asks.entries())
      expect([i, together[i]!.text]).toEqual([i, await alone(ask)])
  })

  test("with a seed say the same alone, among others, with a cold and with a warm cache, in any order", async () => {
    const ask = (length: number, seed: number): Ask => ({
      promptIds: prompt(length, 5),
      sampler: hot,
      seed,
      maxTokens: 24,
    })
    const asks = [ask(200, 1), ask(130, 2), ask(70, 3), ask(200, 4)]
    const wanted = await Promise.all(asks.map(alone))
    expect(new Set(wanted).size).toBe(4)
    const others = () =>
      [40, 90, 170, 250].map((length) =>
        engine.ask({ promptIds: prompt(length, 5), sampler: hot, seed: length, maxTokens: 40 }),
      )
    for (let round = 0; round < 3; round++) {
      const noise = others()
      const order = round === 1 ? [...asks.keys()].reverse() : [...asks.keys()]
      const texts = await Promise.all(order.map((i) => engine.ask(asks[i]!)))
      expect(texts.map((said) => said.text)).toEqual(order.map((i) => wanted[i]))
      await Promise.all(noise)
    }
  })

  test("whatever comes, joins and leaves: greedy and seeded texts are those of the request alone", async () => {
    const request = fc.record({
      length: fc.integer({ min: 1, max: 220 }),
      family: fc.integer({ min: 1, max: 3 }),
      seed: fc.option(fc.nat(), { nil: undefined }),
      maxTokens: fc.integer({ min: 1, max: 20 }),
      delay: fc.nat(12),
      cancelAfter: fc.option(fc.nat(12), { nil: undefined }),
      priority: fc.constantFrom("realtime" as const, "batch" as const),
    })
    await fc.assert(
      fc.asyncProperty(fc.array(request, { minLength: 1, maxLength: 10 }), async (requests) => {
        await Promise.all(
          requests.map(
            async ({ length, family, seed, maxTokens, delay, cancelAfter, priority }) => {
              for (let turn = 0; turn < delay; turn++)
                await new Promise((resolve) => setImmediate(resolve))
              const ask: Ask = {
                promptIds: prompt(length, family),
                maxTokens,
                sampler: seed === undefined ? greedy : hot,
                seed: seed ?? 0,
              }
              const said = await engine.ask({
                ...ask,
                priority,
                ...(cancelAfter !== undefined && { cancelAfter }),
              })
              const wanted = await alone(ask)
              if (said.end === "done") expect(said.text).toBe(wanted)
              else expect(wanted.startsWith(said.text)).toBe(true)
            },
          ),
        )
      }),
      { numRuns: runs(12) },
    )
  }, 60_000)

  test("no greedy text and none with a seed depends on guessing", async () => {
    const words = [50, 61, 72, 83, 94]
    const repeating = Int32Array.from({ length: 120 }, (_, i) => words[i % 5]!)
    const ask: Ask = { promptIds: repeating, sampler: greedy, maxTokens: 60, topLogprobs: 2 }
    expect((await engine.ask(ask)).text).toBe((await unspeculative.ask(ask)).text)
    const seeded = { ...ask, sampler: hot }
    expect((await engine.ask(seeded)).text).toBe((await unspeculative.ask(seeded)).text)
  })
})

describe("cached beginnings", () => {
  test("are the same numbers as read ones: the same text with and without, and marked ones are counted", async () => {
    const [cached, plain] = [
      await openInProcess({ path, graphs }),
      await openInProcess({ path, graphs, prefixCacheBytes: 0 }),
    ]
    const ask: Ask = {
      promptIds: prompt(300),
      cacheBreakpoints: [250],
      sampler: greedy,
      maxTokens: 16,
    }
    const wanted = await plain.ask(ask)
    const [first, second] = [await cached.ask(ask), await cached.ask(ask)]
    expect([first.text, second.text]).toEqual([wanted.text, wanted.text])
    expect([wanted.cacheReadTokens, wanted.cacheWriteTokens]).toEqual([0, 0])
    expect([first.cacheReadTokens, first.cacheWriteTokens]).toEqual([0, 250])
    expect([second.cacheReadTokens, second.cacheWriteTokens]).toEqual([250, 0])
    expect(second.events.filter((event) => event.type === "prefilled")).toHaveLength(1)
    const stranger = await cached.ask({ ...ask, account: "b" })
    expect([stranger.text, stranger.cacheReadTokens, stranger.cacheWriteTokens]).toEqual([
      wanted.text,
      0,
      250,
    ])
    const unmarked = await cached.ask({ ...ask, cacheBreakpoints: [] })
    expect([unmarked.text, unmarked.cacheReadTokens, unmarked.cacheWriteTokens]).toEqual([
      wanted.text,
      0,
      0,
    ])
    const longer = await cached.ask({
      ...ask,
      promptIds: Int32Array.of(...prompt(280), ...prompt(60, 9)),
      cacheBreakpoints: [320],
    })
    expect([longer.cacheReadTokens, longer.cacheWriteTokens]).toEqual([250, 70])
    await cached.close()
    await plain.close()
  })

  test("many that begin alike and come at once read the beginning once", async () => {
    const engine = await openInProcess({ path, graphs })
    const asks = Array.from({ length: 6 }, (_, i) =>
      engine.ask({ promptIds: Int32Array.of(...prompt(256), ...prompt(8, 50 + i)) }),
    )
    const chunks = (await Promise.all(asks)).map(
      (said) => said.events.filter((event) => event.type === "prefilled").length,
    )
    expect(chunks).toEqual([5, 1, 1, 1, 1, 1])
    await engine.close()
  })
})

test("log-probabilities come with the text, the likeliest first, and greedy takes the first", async () => {
  const engine = await openInProcess({ path, graphs })
  const said = await engine.ask({
    promptIds: prompt(20),
    sampler: greedy,
    topLogprobs: 3,
    maxTokens: 12,
  })
  const details = said.events.flatMap((event) => ("details" in event ? (event.details ?? []) : []))
  expect(details).toHaveLength(12)
  for (const { logprob, top, bytes } of details) {
    expect(top.map((other) => other.logprob)).toEqual(
      top.map((other) => other.logprob).sort((a, b) => b - a),
    )
    expect(top).toHaveLength(3)
    expect(top.every((other) => other.logprob <= logprob)).toBe(true)
    expect(bytes.length).toBeGreaterThan(0)
  }
  await engine.close()
})
