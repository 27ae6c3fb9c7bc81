import { cpSync, readdirSync, readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { Effect, Exit, Fiber, Scope, Stream } from "effect"
import { afterAll, beforeAll, describe, expect, test } from "vitest"
import type { ChatRequest, LoadedModel } from "../../core/ports/model.ts"
import { kernelsName } from "./onnx/kernels.ts"
import { fixtureFolder } from "./testing/fixtures.ts"
import {
  answer,
  chatRequest,
  collect,
  context,
  failureOf,
  openBackend,
} from "./testing/open-backend.ts"
import { tinyLlamaFile } from "./testing/tiny-llama.ts"

const fixture = openBackend({ slots: 2, queue: 2 })
const path = join(fixture.dataDir, "tiny.gguf")
let model: LoadedModel<"chat">

beforeAll(async () => {
  writeFileSync(path, tinyLlamaFile(5))
  model = await fixture.open("chat", path, { options: { queueWaitMs: 60_000 } })
})
afterAll(() => fixture.close())

const hot = (seed: number, more: Partial<ChatRequest> = {}) =>
  chatRequest("the 1", {
    sampling: { temperature: 1.5, topP: 0.95, frequencyPenalty: 0.2, presencePenalty: 0.1, seed },
    maxTokens: 40,
    ...more,
  })

test("says what it is", () => {
  expect(model).toMatchObject({
    contextTokens: 256,
    modalities: ["text"],
    adapters: [],
    servedBy: "onnx cpu",
  })
})

test("the log says once whose kernels multiply", async () => {
  await fixture.open("chat", path, { options: { precision: "int8" } })
  const said = fixture.log.lines.filter(({ event }) => event === "engine.kernels")
  expect(said.map(({ fields }) => fields)).toEqual([{ kernels: kernelsName() ?? "onnxruntime" }])
})

test("recommends what the operator says, else what the model's files say, else nothing", async () => {
  const own = openBackend()
  const folder = join(own.dataDir, "advised")
  cpSync(fixtureFolder("qwen2"), folder, { recursive: true })
  const file = join(folder, "generation_config.json")
  const generation = JSON.parse(readFileSync(file, "utf8")) as object
  writeFileSync(file, JSON.stringify({ ...generation, do_sample: true, temperature: 0.7 }))
  const { advisedSampling: byFiles } = await own.open("chat", folder)
  const options = { recommendedTemperature: 0.3 }
  const { advisedSampling: byConfig } = await own.open("chat", folder, { options })
  expect([byFiles, byConfig, model.advisedSampling]).toEqual([
    { temperature: 0.7, source: "files" },
    { temperature: 0.3, source: "config" },
    undefined,
  ])
  await own.close()
})

test("streams an answer, meters it as it is produced and reports its stages", async () => {
  const { plan, events, usage, metered, finish } = await answer(model, hot(1))
  expect(plan.bound).toMatchObject({ inputTokens: metered.usage[0]!.inputTokens, outputTokens: 40 })
  expect(events.filter((event) => event.type === "finish")).toHaveLength(1)
  expect(finish).toMatch(/stop|length/)
  expect(metered.usage.map((soFar) => soFar.outputTokens)).toEqual(
    Array.from({ length: usage.outputTokens + 1 }, (_, i) => i),
  )
  expect(new Set(metered.stages)).toEqual(new Set(["tokenize", "queue", "prefill", "decode"]))
})

test("the same seed gives the same text, alone and beside others; another seed another", async () => {
  const alone = (await answer(model, hot(7))).text
  const [again, other] = await Promise.all([
    answer(model, hot(7)),
    answer(model, hot(8)),
    answer(model, hot(9)),
  ])
  expect(again.text).toBe(alone)
  expect(other.text).not.toBe(alone)
})

test("ends at max_tokens, at the window, and before a stop string", async () => {
  const long = await answer(model, hot(11, { maxTokens: 5 }))
  expect([long.finish, long.usage.outputTokens]).toEqual(["length", 5])
  const full = await answer(
    model,
    chatRequest("x", {
      maxTokens: 10_000,
      sampling: {
        temperature: 1.5,
        topP: 1,
        frequencyPenalty: 0,
        presencePenalty: 0,
        seed: 3,
        logitBias: new Map([
          [1, -100],
          [2, -100],
        ]),
      },
    }),
  )
  expect(full.plan.bound.inputTokens + full.plan.bound.outputTokens).toBe(256)
  expect([full.finish, full.usage.outputTokens]).toEqual(["length", full.plan.bound.outputTokens])
  const [a, b] = [full.text.slice(0, 12), full.text.slice(12, 15)]
  const stopped = await answer(
    model,
    chatRequest("x", {
      maxTokens: 10_000,
      stop: [b],
      sampling: {
        temperature: 1.5,
        topP: 1,
        frequencyPenalty: 0,
        presencePenalty: 0,
        seed: 3,
        logitBias: new Map([
          [1, -100],
          [2, -100],
        ]),
      },
    }),
  )
  expect(stopped.finish).toBe("stop")
  expect(full.text.slice(0, full.text.indexOf(b))).toBe(stopped.text)
  expect(stopped.text.length).toBeLessThanOrEqual(a.length)
})

test("a bias can force a token, and the end", async () => {
  const forced = await answer(
    model,
    chatRequest("x", {
      maxTokens: 3,
      sampling: {
        temperature: 0,
        topP: 1,
        frequencyPenalty: 0,
        presencePenalty: 0,
        logitBias: new Map([[3 + 0x41, 100]]),
      },
    }),
  )
  expect(forced.text).toBe("AAA")
  const ended = await answer(
    model,
    chatRequest("x", {
      sampling: {
        temperature: 0,
        topP: 1,
        frequencyPenalty: 0,
        presencePenalty: 0,
        logitBias: new Map([[1, 100]]),
      },
    }),
  )
  expect([ended.text, ended.finish, ended.usage.outputTokens]).toEqual(["", "stop", 1])
})

describe("refuses before it does anything", () => {
  const image = { type: "media", mediaType: "image/png", bytes: new Uint8Array() } as const
  test.each<readonly [string, Partial<ChatRequest>]>([
    ["messages", { messages: [{ role: "user", content: [image] }] }],
    ["adapter", { adapter: { id: "a", strength: 1 } }],
  ])("%s", async (param, part) => {
    expect(await failureOf(model.task.plan(chatRequest("x", part), context()))).toMatchObject({
      code: "unsupported_parameter",
      param,
    })
  })

  test("a prompt over the window, with the counts", async () => {
    const some = await failureOf(
      model.task.plan(chatRequest("a ".repeat(150), { maxTokens: 7 }), context()),
    )
    expect(some).toMatchObject({ code: "context_length_exceeded", param: "messages" })
    expect(some.message).toMatch(
      /have 3\d\d tokens and max_tokens is 7, but the model's window is 256/,
    )
    expect(
      await failureOf(model.task.plan(chatRequest("a".repeat(100_000)), context())),
    ).toMatchObject({ code: "context_length_exceeded" })
  })

  test("a bias on a token that does not exist", async () => {
    const sampling = {
      temperature: 0,
      topP: 1,
      frequencyPenalty: 0,
      presencePenalty: 0,
      logitBias: new Map([[99_999, 1]]),
    }
    expect(
      await failureOf(model.task.plan(chatRequest("x", { sampling }), context())),
    ).toMatchObject({ code: "invalid_request_error", param: "logit_bias" })
  })
})

const endless = hot(1, {
  maxTokens: 200,
  sampling: {
    temperature: 1,
    topP: 1,
    frequencyPenalty: 0,
    presencePenalty: 0,
    seed: 1,
    logitBias: new Map([
      [1, -100],
      [2, -100],
    ]),
  },
})

test("more requests than slots and queue are refused at once; who leaves makes room", async () => {
  const plans = await Promise.all(
    Array.from({ length: 5 }, () => Effect.runPromise(model.task.plan(endless, context()))),
  )
  const fibers = plans.slice(0, 4).map((plan) => Effect.runFork(Stream.runDrain(plan.run)))
  const refused = await failureOf(Stream.runDrain(plans[4]!.run))
  expect(refused).toMatchObject({ code: "backend_busy" })
  expect(refused.retryAfterMs).toBeGreaterThan(0)
  expect(await failureOf(model.task.plan(endless, context()))).toMatchObject({
    code: "backend_busy",
  })
  await Effect.runPromise(Fiber.interruptAll(fibers))
  expect((await answer(model, hot(2))).finish).toBeDefined()
})

test("a stream that is left stops the engine: nothing more is metered", async () => {
  const metered = context()
  const plan = await Effect.runPromise(model.task.plan(endless, metered))
  await Effect.runPromise(Stream.runDrain(Stream.take(plan.run, 2)))
  const seen = metered.usage.length
  await answer(model, hot(3))
  expect(metered.usage.length).toBe(seen)
  expect(metered.usage.at(-1)!.outputTokens).toBeLessThan(200)
})

test("an answer that comes too late is a backend_timeout", async () => {
  const late = context({ deadlineMs: fixture.clock.nowMs() })
  const plan = await Effect.runPromise(model.task.plan(endless, late))
  expect(await failureOf(Stream.runDrain(plan.run))).toMatchObject({ code: "backend_timeout" })
})

test("entries that point to one file share one engine and one graph, which the last one closes", async () => {
  const [first, second] = [Scope.makeUnsafe(), Scope.makeUnsafe()]
  await fixture.open("rerank", path, { scope: first })
  // what its file comes to without a precision
  const options = { precision: "int8" }
  const other = await fixture.open("chat", path, { scope: second, contextTokens: 100, options })
  expect(other.contextTokens).toBe(100)
  await Effect.runPromise(Scope.close(first, Exit.void))
  expect((await answer(other, chatRequest("x"))).finish).toBeDefined()
  await Effect.runPromise(Scope.close(second, Exit.void))
  expect((await answer(model, chatRequest("x"))).finish).toBeDefined()
  expect(readdirSync(join(fixture.dataDir, "graphs"))).toHaveLength(1)
})

test("what was collected is a whole answer in fp32 too", async () => {
  const exact = await fixture.open("chat", path, { options: { precision: "fp32" } })
  const plan = await Effect.runPromise(exact.task.plan(chatRequest("x"), context()))
  expect((await collect(plan)).at(-1)!.type).toBe("finish")
})
