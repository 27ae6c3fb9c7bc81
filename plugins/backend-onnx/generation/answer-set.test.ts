import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterAll, afterEach, beforeAll, describe, expect, test, vi } from "vitest"
import { furtherSeeds } from "../sampling/random.ts"
import { writeGguf } from "../testing/gguf-writer.ts"
import { tinyLlama } from "../testing/tiny-llama.ts"
import { capacityOf } from "./answer-set.ts"
import { CachedDecoder } from "./cached-decoder.ts"
import type { DecoderEvent, GenerateRequest } from "./decoder-jobs.ts"
import { type Ask, openInProcess, type Said } from "./testing/in-process.ts"

const root = mkdtempSync(join(tmpdir(), "rakit-answers-"))
const path = join(root, "tiny.gguf")
const content = tinyLlama(4)
writeFileSync(
  path,
  writeGguf({ ...content, metadata: { ...content.metadata, "llama.context_length": 4096 } }),
)
const graphs = join(root, "graphs")
const open = (more: Partial<Parameters<typeof openInProcess>[0]> = {}) =>
  openInProcess({ path, graphs, ...more })
type Engine = Awaited<ReturnType<typeof openInProcess>>
let engine: Engine
beforeAll(async () => {
  engine = await open()
})
afterEach(() => vi.restoreAllMocks())
afterAll(async () => {
  await engine.close()
  rmSync(root, { recursive: true, force: true })
})

const prompt = (length: number): Int32Array =>
  Int32Array.from({ length }, (_, i) => 3 + ((i * 7919 + i * i) % 250))
const hot = {
  frequencyPenalty: 0,
  presencePenalty: 0,
  topP: 1,
  temperature: 1,
  logitBias: [[1, -100] as const, [2, -100] as const],
}
const ask = (answers: number, more: Partial<Ask> = {}): Ask => ({
  promptIds: prompt(150),
  sampler: hot,
  seed: 7,
  ...(answers > 1 && { furtherSeeds: furtherSeeds(7, answers - 1) }),
  maxTokens: 16,
  ...more,
})

const textOf = (events: readonly DecoderEvent[]) =>
  events.map((event) => ("text" in event ? event.text : "")).join("")
const answersOf = ({ events }: Said, count: number) =>
  Array.from({ length: count }, (_, i) => events.filter(({ answer = 0 }) => answer === i))
const textsOf = (said: Said, count: number) => answersOf(said, count).map(textOf)

/** Counts the tokens that are read, in passes over more than one. */
const countRead = () => {
  const forward = vi.spyOn(CachedDecoder.prototype, "forward")
  return () =>
    forward.mock.calls.reduce((sum, [, { length }]) => sum + (length > 1 ? length : 0), 0)
}

describe("several answers to one prompt", () => {
  test("the prompt is read once, and reported once", async () => {
    const read = countRead()
    const said = await engine.ask(ask(8, { owner: "cold" }))
    expect(said.end).toBe("done")
    expect(read()).toBe(150)
    const reports = said.events.filter(({ type }) => type === "prefilled")
    expect(reports.at(-1)).toMatchObject({ inputTokens: 150 })
    expect(reports.every(({ answer }) => answer === undefined)).toBe(true)
  })

  test("each has its own text and end, and the first is the one that is written alone", async () => {
    const said = await engine.ask(ask(8))
    const texts = textsOf(said, 8)
    expect(new Set(texts).size).toBe(8)
    expect(texts[0]).toBe((await engine.ask(ask(1))).text)
    for (const events of answersOf(said, 8)) {
      expect(events.filter(({ type }) => type === "finish")).toHaveLength(1)
      const ends = events.filter(({ type }) => type !== "time").at(-1)
      expect(ends).toMatchObject({ type: "finish", reason: "length" })
      const counts = events.flatMap((event) => (event.type === "token" ? event.outputTokens : []))
      expect(counts).toEqual(Array.from({ length: 16 }, (_, i) => i + 1))
    }
  })

  test("each is the answer of its own seed", async () => {
    const texts = textsOf(await engine.ask(ask(4)), 4)
    for (const [i, seed] of furtherSeeds(7, 3).entries())
      expect(texts[i + 1]).toBe((await engine.ask(ask(1, { seed }))).text)
  })

  test.each([1, 3])("they are the same in %i slots, and with others beside them", async (slots) => {
    const wanted = textsOf(await engine.ask(ask(5)), 5)
    const small = await open({ slots })
    const [said, other] = await Promise.all([
      small.ask(ask(5)),
      small.ask(ask(1, { seed: 99, account: "b" })),
    ])
    expect([said.end, other.end]).toEqual(["done", "done"])
    expect(textsOf(said, 5)).toEqual(wanted)
    await small.close()
  })

  test("they end together when the call is cancelled", async () => {
    const said = await engine.ask(ask(8, { maxTokens: 400, cancelAfter: 60 }))
    expect(said.end).toBeUndefined()
    // the rows are free again
    expect((await engine.ask(ask(8))).end).toBe("done")
  })

  test("one that fails ends all", async () => {
    let calls = 0
    const decode = CachedDecoder.prototype.decode
    vi.spyOn(CachedDecoder.prototype, "decode").mockImplementation(async function (
      this: CachedDecoder,
      ...args
    ) {
      const logits = await decode.apply(this, args)
      if (++calls === 5) logits.at(-1)!.fill(Number.NaN)
      return logits
    })
    expect((await engine.ask(ask(4))).end).toMatch(/not numbers/)
    expect(calls).toBeLessThan(8)
  })

  test("they are written in common passes", async () => {
    const decode = vi.spyOn(CachedDecoder.prototype, "decode")
    const said = await engine.ask(ask(4))
    expect(new Set(textsOf(said, 4)).size).toBe(4)
    expect(Math.max(...decode.mock.calls.map(([caches]) => caches.length))).toBe(4)
  })
})

test("no more answers are written at once than the memory holds", () => {
  const request = { promptIds: prompt(100), maxTokens: 50 } as unknown as GenerateRequest
  const needs = (answers: number, capacity: number) =>
    capacityOf({ ...request, furtherSeeds: furtherSeeds(1, answers - 1) }, capacity)
  expect(needs(1, 10_000)).toEqual({ tokens: 150, atOnce: 1 })
  expect(needs(8, 10_000)).toEqual({ tokens: 100 + 8 * 150, atOnce: 8 })
  expect(needs(8, 500)).toEqual({ tokens: 400, atOnce: 2 })
  expect(needs(8, 160)).toEqual({ tokens: 160, atOnce: 1 })
})
