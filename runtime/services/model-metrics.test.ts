import { Effect, Exit, Fiber, Stream } from "effect"
import { beforeEach, describe, expect, it } from "vitest"
import { apiError } from "../../core/errors.ts"
import type { ChatEvent, LoadedModel, ModelContext, TaskName } from "../../core/ports/model.ts"
import { usageOf } from "../../core/usage.ts"
import { type FakeClock, fakeClock } from "../../testing/fakes/clock.ts"
import {
  type FakeModel,
  fakeCatalogue,
  fakeChatModel,
  fakeEmbedModel,
  fakeRerankModel,
} from "../../testing/index.ts"
import { type ExposedMetrics, makeMetrics } from "./metrics.ts"
import { makeModelMetrics } from "./model-metrics.ts"

let clock: FakeClock
let metrics: ExposedMetrics
beforeEach(() => {
  clock = fakeClock()
  metrics = makeMetrics()
})

/** The values of the series of a name, by their labels without the model's. */
const read = async (name: string): Promise<Readonly<Record<string, number>>> =>
  Object.fromEntries(
    (await metrics.expose())
      .split("\n")
      .filter((line) => line.startsWith(`${name}{`))
      .map((line): [string, number] => {
        const [, labels = "", value] = /\{(.*)\} (.*)$/.exec(line)!
        const own = labels.split(",").filter((label) => !label.startsWith("model_name="))
        return [own.join(","), Number(value)]
      }),
  )

const contextOf = (more: Partial<ModelContext> = {}): ModelContext => ({
  callId: "call",
  tenant: { account: "a", mode: "live" },
  priority: "realtime",
  deadlineMs: Number.POSITIVE_INFINITY,
  meter: () => {},
  time: () => {},
  ...more,
})

const watched = <T extends TaskName>(model: FakeModel<T>): LoadedModel<T> =>
  makeModelMetrics(metrics, fakeCatalogue(model as never), clock).watch(model.entry, model.loaded)

const chat = {
  messages: [
    { role: "user" as const, content: [{ type: "text" as const, text: "one two three" }] },
  ],
  sampling: { temperature: 1, topP: 1, frequencyPenalty: 0, presencePenalty: 0 },
  maxTokens: 100,
  stop: [],
}
const planned = (model: LoadedModel<"chat">, context = contextOf(), request = chat) =>
  Effect.runSync(model.task.plan(request, context)).run

describe("a chat", () => {
  // step 0 reads the prompt, each of the others makes a token, the last one ends the answer
  const stepsOf = (msOfStep: readonly number[]) =>
    fakeChatModel({
      before: (step) => Effect.sync(() => clock.advance(msOfStep[step] ?? 0)),
    })

  it("is timed in the queue, to its first token, for each further token, and to its end", async () => {
    const run = planned(watched(stepsOf([200, 300, 40, 60, 0])))
    clock.advance(50)
    await Effect.runPromise(Stream.runDrain(run))
    const sums = async (name: string) => (await read(`${name}_sum`))['priority="realtime"']
    expect(await sums("rakit_request_queue_time_seconds")).toBe(0.2)
    expect(await sums("rakit_time_to_first_token_seconds")).toBe(0.55)
    expect(await sums("rakit_request_prefill_time_seconds")).toBe(0.3)
    expect(await sums("rakit_request_decode_time_seconds")).toBe(0.1)
    expect(await sums("rakit_request_time_per_output_token_seconds")).toBe(0.05)
    expect(await sums("rakit_request_inference_time_seconds")).toBe(0.4)
    expect(await sums("rakit_e2e_request_latency_seconds")).toBe(0.65)
    expect(await sums("rakit_request_prompt_tokens")).toBe(4)
    expect(await sums("rakit_request_generation_tokens")).toBe(3)
  })

  it("waits until it works, runs until it ends, and counts tokens while it runs", async () => {
    let waits = true
    const model = fakeChatModel({
      before: (step) => (step === (waits ? 0 : 3) ? Effect.never : Effect.void),
    })
    const loaded = watched(model)
    const state = async () => [
      (await read("rakit_num_requests_waiting"))['priority="realtime"'],
      (await read("rakit_num_requests_running"))['priority="realtime"'],
    ]
    const started = (run: ReturnType<typeof planned>) => Effect.runFork(Stream.runDrain(run))
    const first = started(planned(loaded))
    expect(await state()).toEqual([1, 0])
    waits = false
    const second = started(planned(loaded))
    expect(await state()).toEqual([1, 1])
    expect((await read("rakit_generation_tokens_total"))['priority="realtime"']).toBe(2)
    for (const fiber of [first, second]) await Effect.runPromise(Fiber.interrupt(fiber))
    expect(await state()).toEqual([0, 0])
    expect((await read("rakit_prompt_tokens_total"))['priority="realtime"']).toBe(4)
    expect((await read("rakit_generation_tokens_total"))['priority="realtime"']).toBe(2)
    expect(await read("rakit_request_success_total")).toMatchObject({
      'priority="realtime",finished_reason="abort"': 2,
      'priority="realtime",finished_reason="stop"': 0,
    })
  })

  it("leaves the queue when its backend says how long it was there", async () => {
    const { task, ...rest } = fakeChatModel({ before: () => Effect.never }).loaded
    const queueing: LoadedModel<"chat"> = {
      ...rest,
      task: {
        plan: (request, context) =>
          Effect.map(task.plan(request, context), ({ bound }) => ({
            bound,
            run: Stream.suspend(() => {
              clock.advance(70)
              context.time("queue", 70)
              clock.advance(500)
              return Stream.fail(apiError("backend_error"))
            }),
          })),
      },
    }
    const loaded = watched({ ...fakeChatModel(), loaded: queueing })
    const exit = await Effect.runPromiseExit(Stream.runDrain(planned(loaded)))
    expect(Exit.isFailure(exit)).toBe(true)
    expect((await read("rakit_request_queue_time_seconds_sum"))['priority="realtime"']).toBe(0.07)
    expect(await read("rakit_request_success_total")).toMatchObject({
      'priority="realtime",finished_reason="error"': 1,
    })
  })

  it("ends with its finish reason; a line of a batch is counted apart", async () => {
    const loaded = watched(fakeChatModel())
    await Effect.runPromise(Stream.runDrain(planned(loaded)))
    const batch = contextOf({ priority: "batch" })
    await Effect.runPromise(Stream.runDrain(planned(loaded, batch, { ...chat, maxTokens: 2 })))
    expect(await read("rakit_request_success_total")).toMatchObject({
      'priority="realtime",finished_reason="stop"': 1,
      'priority="realtime",finished_reason="length"': 0,
      'priority="batch",finished_reason="length"': 1,
    })
  })

  it("of several answers counts each, and times a token as if it were one", async () => {
    const events = [0, 1].flatMap((answer): readonly ChatEvent[] => [
      { type: "text", text: "ab", answer },
      { type: "finish", reason: "stop", answer },
    ])
    const task: LoadedModel<"chat">["task"] = {
      plan: (_, context) =>
        Effect.succeed({
          bound: usageOf({}),
          run: Stream.suspend(() => {
            for (const outputTokens of [2, 4]) {
              clock.advance(100)
              context.meter("m", usageOf({ outputTokens }))
            }
            return Stream.fromIterable(events)
          }),
        }),
    }
    const fake = fakeChatModel()
    const loaded = watched<"chat">({ ...fake, loaded: { ...fake.loaded, task } })
    await Effect.runPromise(Stream.runDrain(planned(loaded)))
    const ended = await read("rakit_request_success_total")
    expect(ended['priority="realtime",finished_reason="stop"']).toBe(2)
    const perToken = await read("rakit_request_time_per_output_token_seconds_sum")
    expect(perToken['priority="realtime"']).toBe(0.1)
  })

  it("that was planned and never run is not counted", async () => {
    planned(watched(fakeChatModel()))
    const counts = await read("rakit_request_success_total")
    expect(Object.values(counts).every((count) => count === 0)).toBe(true)
    expect(await read("rakit_num_requests_waiting")).toEqual({
      'priority="realtime"': 0,
      'priority="batch"': 0,
    })
  })
})

it("images are counted apart from tokens", async () => {
  const embed = watched(fakeEmbedModel({ entry: { modalities: ["text", "image"] } }))
  const image = { type: "media", mediaType: "image/png", bytes: new Uint8Array(9) } as const
  const items = [{ type: "text", text: "satu dua" } as const, image, image]
  const planned = Effect.runSync(embed.task.plan({ items, truncate: "END" }, contextOf()))
  await Effect.runPromise(Stream.runDrain(planned.run))
  const of = 'priority="realtime"'
  expect((await read("rakit_images_total"))[of]).toBe(2)
  expect((await read("rakit_prompt_tokens_total"))[of]).toBe(2)
})

it("embeddings and scores have tokens and a duration, and no first token", async () => {
  const embed = watched(fakeEmbedModel())
  const request = { items: chat.messages[0]!.content, truncate: "END" as const }
  const embedding = Effect.runSync(embed.task.plan(request, contextOf()))
  await Effect.runPromise(Stream.runDrain(embedding.run))
  const rerank = watched(fakeRerankModel())
  const scoring = Effect.runSync(
    rerank.task.plan({ query: "a", documents: ["a b", "c"] }, contextOf()),
  )
  await Effect.runPromise(Stream.runDrain(scoring.run))
  const text = await metrics.expose()
  for (const model_name of ["svc-embed", "svc-rerank"]) {
    const of = `model_name="${model_name}",priority="realtime"`
    expect(text).toContain(`rakit_request_success_total{${of},finished_reason="stop"} 1`)
    expect(text).toContain(`rakit_e2e_request_latency_seconds_count{${of}} 1`)
    expect(text).not.toContain(`rakit_time_to_first_token_seconds_count{${of}}`)
    expect(text).toMatch(new RegExp(`rakit_prompt_tokens_total\\{${of}\\} [1-9]`))
  }
})

describe("of the engines", () => {
  it("gauges and totals are looked up when they are read; totals never fall", async () => {
    let stats = { kvCacheUsage: 0.25, prefixCacheQueries: 100, prefixCacheHits: 40, restarts: 0 }
    const model = fakeChatModel()
    const catalogue = fakeCatalogue({ ...model, loaded: { ...model.loaded, stats: () => stats } })
    makeModelMetrics(metrics, catalogue, clock)
    expect(Object.values(await read("rakit_kv_cache_usage_perc"))).toEqual([0.25])
    stats = { kvCacheUsage: 0, prefixCacheQueries: 150, prefixCacheHits: 60, restarts: 1 }
    expect(Object.values(await read("rakit_kv_cache_usage_perc"))).toEqual([0])
    expect(Object.values(await read("rakit_prefix_cache_queries_total"))).toEqual([150])
    expect(Object.values(await read("rakit_prefix_cache_hits_total"))).toEqual([60])
    expect(Object.values(await read("rakit_engine_restarts_total"))).toEqual([1])
  })

  it("each model has exactly one state", async () => {
    const model = fakeChatModel()
    const catalogue = fakeCatalogue(model)
    makeModelMetrics(metrics, catalogue, clock)
    const current = async () =>
      Object.entries(await read("rakit_model_state")).flatMap(([of, value]) => (value ? of : []))
    expect(await current()).toEqual(['state="ready"'])
    catalogue.set(model.entry.id, { state: "failed", reason: "no file" })
    expect(await current()).toEqual(['state="failed"'])
  })
})
