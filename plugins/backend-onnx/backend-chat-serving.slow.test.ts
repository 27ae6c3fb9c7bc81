import { writeFileSync } from "node:fs"
import { join } from "node:path"
import { Effect, Fiber, Stream } from "effect"
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest"
import type { ChatRequest, LoadedModel, ModelContext, Part } from "../../core/ports/model.ts"
import { writeGguf } from "./testing/gguf-writer.ts"
import { answer, chatRequest, context, failureOf, openBackend } from "./testing/open-backend.ts"
import { tinyLlama } from "./testing/tiny-llama.ts"

const fixture = openBackend({ slots: 2, queue: 8 })
let impatient: LoadedModel<"chat">
let patient: LoadedModel<"chat">

beforeAll(async () => {
  const path = join(fixture.dataDir, "tiny.gguf")
  const content = tinyLlama(8)
  writeFileSync(
    path,
    writeGguf({ ...content, metadata: { ...content.metadata, "llama.context_length": 4096 } }),
  )
  impatient = await fixture.open("chat", path)
  patient = await fixture.open("chat", path, { options: { queueWaitMs: 60_000 } })
})
afterAll(() => fixture.close())

const noEnd = new Map([
  [1, -100],
  [2, -100],
])
const plain = { temperature: 0, topP: 1, frequencyPenalty: 0, presencePenalty: 0, logitBias: noEnd }
const part = (text: string, marked = false): Part => ({
  type: "text",
  text,
  ...(marked && { cacheBreakpoint: true }),
})
const asked = (content: readonly Part[], more: Partial<ChatRequest> = {}): ChatRequest =>
  chatRequest("", { messages: [{ role: "user", content }], maxTokens: 4, sampling: plain, ...more })
const counts = async (request: ChatRequest, of: Partial<ModelContext> = {}) => {
  const { usage, plan, text } = await answer(patient, request, context(of))
  return {
    read: usage.cacheReadTokens,
    write: usage.cacheWriteTokens,
    input: usage.inputTokens,
    bound: plan.bound,
    text,
  }
}
const letters = (count: number, from = "a") =>
  Array.from({ length: count }, (_, i) => String.fromCharCode(from.charCodeAt(0) + (i % 9))).join(
    "",
  )
const tenant = (account: string, mode: "live" | "test" = "live"): Partial<ModelContext> => ({
  tenant: { account, mode },
})

describe("cache markers", () => {
  test("the first call writes the prefix, the next ones read it, whatever follows; the bound has the write", async () => {
    const of = tenant("first")
    const first = await counts(asked([part(letters(300), true), part("one")]), of)
    expect(first.read).toBe(0)
    expect(first.write).toBeGreaterThan(300)
    expect(first.write).toBeLessThan(first.input)
    expect(first.bound.cacheWriteTokens).toBe(first.write)
    const second = await counts(asked([part(letters(300), true), part("another question")]), of)
    expect([second.read, second.write]).toEqual([first.write, 0])
    const grown = await counts(
      asked([part(letters(300)), part(letters(80, "k"), true), part("x")]),
      of,
    )
    expect([grown.read, grown.read + grown.write]).toEqual([
      first.write,
      grown.bound.cacheWriteTokens,
    ])
  })

  test("the text is the same with a cold and a warm cache", async () => {
    const request = asked([part(letters(200, "d"), true), part("why")], { maxTokens: 20 })
    const cold = await counts(request, tenant("cold"))
    const warm = await counts(request, tenant("cold"))
    expect(warm.read).toBeGreaterThan(200)
    expect(warm.text).toBe(cold.text)
    const seeded = (seed: number) =>
      asked([part(letters(200, "d"), true), part("why")], {
        maxTokens: 20,
        sampling: { ...plain, temperature: 1, seed },
      })
    const [a, b] = [
      await counts(seeded(5), tenant("seed")),
      await counts(seeded(5), tenant("seed")),
    ]
    expect([b.text, b.read]).toEqual([a.text, a.write])
  })

  test("a prefix of 100 tokens or fewer is as if unmarked; 101 are enough", async () => {
    // the template before the text takes some tokens of its own
    const before =
      (await counts(asked([part(letters(120), true), part("x")]), tenant("probe"))).write - 120
    const prefix = (tokens: number) => asked([part(letters(tokens - before), true), part("x")])
    for (let call = 0; call < 2; call++)
      expect(await counts(prefix(100), tenant("short"))).toMatchObject({
        read: 0,
        write: 0,
        bound: { cacheWriteTokens: 0 },
      })
    expect(await counts(prefix(101), tenant("enough"))).toMatchObject({ read: 0, write: 101 })
    expect(await counts(prefix(101), tenant("enough"))).toMatchObject({ read: 101, write: 0 })
  })

  test("what was not marked is never counted, though it is not read again", async () => {
    const unmarked = asked([part(letters(300, "b")), part("x")])
    for (let call = 0; call < 2; call++)
      expect(await counts(unmarked, tenant("silent"))).toMatchObject({ read: 0, write: 0 })
    const metered = context(tenant("silent"))
    await answer(patient, unmarked, metered)
    // one report for the rest of the prompt, then one for each token
    expect(metered.usage).toHaveLength(1 + 4)
    expect(
      (await counts(asked([part(letters(300, "b"), true), part("x")]), tenant("silent"))).write,
    ).toBeGreaterThan(300)
  })

  test("accounts, their two modes and models never share", async () => {
    const request = asked([part(letters(250, "c"), true), part("x")])
    const { write } = await counts(request, tenant("one"))
    expect(await counts(request, tenant("two"))).toMatchObject({ read: 0, write })
    expect(await counts(request, tenant("one", "test"))).toMatchObject({ read: 0, write })
    expect(await counts(request, tenant("one"))).toMatchObject({ read: write, write: 0 })
  })
})

describe("log-probabilities", () => {
  test("come with their text, as many as wanted, also those of half characters", async () => {
    const { events, text } = await answer(
      patient,
      asked([part("hello")], {
        topLogprobs: 3,
        maxTokens: 24,
        sampling: { ...plain, temperature: 1.2, seed: 4 },
      }),
    )
    const tokens = events.flatMap((event) => (event.type === "text" ? (event.logprobs ?? []) : []))
    expect(Buffer.from(tokens.flatMap((token) => [...token.bytes])).toString()).toBe(text)
    for (const { top, logprob } of tokens) {
      expect(top).toHaveLength(3)
      expect(logprob).toBeLessThanOrEqual(0)
    }
  })

  test("are left away unless asked for; none of them are alternatives with 0", async () => {
    const without = await answer(patient, asked([part("hello")]))
    expect(without.events.some((event) => "logprobs" in event)).toBe(false)
    const none = await answer(patient, asked([part("hello")], { topLogprobs: 0 }))
    const tokens = none.events.flatMap((event) =>
      event.type === "text" ? (event.logprobs ?? []) : [],
    )
    expect(tokens.length).toBeGreaterThan(0)
    expect(tokens.every((token) => token.top.length === 0)).toBe(true)
  })
})

describe("when all slots are taken", () => {
  const endless = (more: Partial<ModelContext> = {}) => {
    const metered = context(more)
    const run = Effect.flatMap(
      patient.task.plan(asked([part("x")], { maxTokens: 3_000 }), metered),
      (plan) => Stream.runDrain(plan.run),
    )
    return { metered, fiber: Effect.runFork(run) }
  }
  const working = (all: readonly ReturnType<typeof endless>[]) =>
    vi.waitUntil(() => all.every(({ metered }) => (metered.usage.at(-1)?.outputTokens ?? 0) > 1), {
      timeout: 15_000,
      interval: 5,
    })

  test("a tier without a queue refuses at once, one with a queue waits", async () => {
    const busy = [endless(), endless()]
    await working(busy)
    const refused = await failureOf(impatient.task.plan(asked([part("x")]), context()))
    expect(refused).toMatchObject({ code: "backend_busy" })
    expect(refused.retryAfterMs).toBeGreaterThan(0)
    const waiting = answer(patient, asked([part("x")]))
    await Effect.runPromise(Fiber.interruptAll(busy.map(({ fiber }) => fiber)))
    expect((await waiting).finish).toBe("length")
    expect((await answer(impatient, asked([part("x")]))).finish).toBe("length")
  })

  test("batch work makes room for real time, and goes on", async () => {
    const batch = [endless({ priority: "batch" }), endless({ priority: "batch" })]
    await working(batch)
    expect((await answer(impatient, asked([part("x")]))).finish).toBe("length")
    const before = batch.map(({ metered }) => metered.usage.length)
    await vi.waitUntil(
      () => batch.every(({ metered }, i) => metered.usage.length > before[i]! + 3),
      { timeout: 15_000, interval: 5 },
    )
    await Effect.runPromise(Fiber.interruptAll(batch.map(({ fiber }) => fiber)))
  })

  test("one account's many requests don't keep another's waiting", async () => {
    const contexts = Array.from({ length: 8 }, () => context(tenant("many")))
    const many = contexts.map((metered) =>
      answer(patient, asked([part("m")], { maxTokens: 400 }), metered),
    )
    const order: string[] = []
    for (const [i, one] of many.entries()) void one.then(() => order.push(`many ${i}`))
    await vi.waitUntil(() => contexts.some(({ usage }) => usage.length > 0), { interval: 1 })
    await answer(patient, asked([part("f")], { maxTokens: 2 }), context(tenant("few"))).then(() =>
      order.push("few"),
    )
    await Promise.all(many)
    expect(order.indexOf("few")).toBeLessThan(4)
  })
})

test("a window is what fits into the memory for keys and values", async () => {
  const small = openBackend({ kvMemoryMb: 1 })
  const path = join(small.dataDir, "tiny.gguf")
  const content = tinyLlama(8)
  writeFileSync(
    path,
    writeGguf({ ...content, metadata: { ...content.metadata, "llama.context_length": 100_000 } }),
  )
  const model = await small.open("chat", path)
  // 2 layers x (keys and values) x 2 key-value heads x head size 16 x 4 bytes
  expect(model.contextTokens).toBe(2 ** 20 / 512)
  await small.close()
})

describe("what its engine says of itself", () => {
  const stats = () => patient.stats!()

  test("looks prompts up in the prefix cache by the token, and finds what an account has asked before", async () => {
    const before = stats()
    const request = asked([part(letters(200, "e")), part("one")])
    const { input } = await counts(request, tenant("observed"))
    const first = stats()
    expect(first.prefixCacheQueries! - before.prefixCacheQueries!).toBe(input)
    expect(first.prefixCacheHits).toBe(before.prefixCacheHits)
    expect(first.prefixCacheUsage).toBeGreaterThan(before.prefixCacheUsage!)
    await counts(request, tenant("observed"))
    // all but the last token, whose logits are needed
    expect(stats().prefixCacheHits! - first.prefixCacheHits!).toBe(input - 1)
    await counts(request, tenant("another"))
    expect(stats().prefixCacheHits! - first.prefixCacheHits!).toBe(input - 1)
    expect(stats()).toEqual(impatient.stats!())
  })

  test("holds memory for keys and values while a request runs, and none afterwards", async () => {
    expect(stats()).toMatchObject({ kvCacheUsage: 0, restarts: 0 })
    const plan = await Effect.runPromise(
      patient.task.plan(asked([part("hello")], { maxTokens: 2_000 }), context()),
    )
    const running = Effect.runFork(Stream.runDrain(plan.run))
    const { inputTokens } = plan.bound
    await vi.waitUntil(() => stats().kvCacheUsage! > 0)
    expect(stats().kvCacheUsage).toBeLessThanOrEqual(1)
    expect(stats().kvCacheUsage).toBeGreaterThan(inputTokens / 1e6)
    await Effect.runPromise(Fiber.interrupt(running))
    await vi.waitUntil(() => stats().kvCacheUsage === 0)
  })

  test("the stages of a chat come in their order, each when it ends", async () => {
    const stages: string[] = []
    const time = (stage: string) => void stages.push(stage)
    await counts(asked([part("hello")]), { time })
    expect(stages).toEqual(["tokenize", "queue", "prefill", "decode"])
  })
})
