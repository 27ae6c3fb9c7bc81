import { Effect, Exit, Fiber, Stream } from "effect"
import fc from "fast-check"
import { describe, expect, test } from "vitest"
import { apiError } from "../../../core/errors.ts"
import {
  type EmbedJobEvent,
  type EncoderInfo,
  type EncoderInput,
  idsOf,
} from "../encoding/embed-job.ts"
import type { Priority } from "../worker/protocol.ts"
import { balance, type Encoder, makeEncoderPool } from "./encoder-pool.ts"

const text = (length: number) => new Int32Array(length).fill(length)
const lengthsOf = (texts: readonly EncoderInput[]) => texts.map((input) => idsOf(input).length)
const info: EncoderInfo = {
  vocabulary: 100,
  maxTokens: 512,
  name: "tiny",
  prompts: { byDefault: "", named: {} },
  digest: "d",
  output: "vector",
  width: 1,
  map: "r1",
}
const memberOf = (engine: Encoder, tokens: Partial<Record<Priority, number>> = {}) => ({
  engine,
  tokens: { realtime: 0, batch: 0, ...tokens },
})

/** A fake encoder: embeds each text as its length, and records its requests. */
const fakeEncoder = ({
  refusal,
  answers = true,
}: {
  readonly refusal?: "model_loading" | "backend_busy" | "backend_error"
  readonly answers?: boolean
} = {}) => {
  const given: number[][] = []
  const availableFor = () => (refusal ? Effect.fail(apiError(refusal)) : Effect.void)
  const encoder: Encoder = {
    info,
    available: availableFor(),
    availableFor,
    servedBy: () => "test",
    stats: () => ({ restarts: 1 }),
    run: ({ texts }, { translate }) => {
      given.push(lengthsOf(texts))
      const events = texts.map(
        (input, index): EmbedJobEvent => ({
          type: "vector",
          index,
          vector: Float32Array.of(idsOf(input).length),
        }),
      )
      return answers
        ? Stream.fromIterable(events.flatMap((event) => translate(event) ?? []))
        : Stream.never
    },
  }
  return { encoder, given }
}
const options = (priority: Priority = "realtime") => ({
  account: "a",
  priority,
  waitMs: 0,
  timeoutMs: () => 1_000,
  translate: (event: EmbedJobEvent) =>
    event.type === "vector" ? [[event.index, event.vector[0]]] : undefined,
})

describe("texts of a request", () => {
  const { encoder } = fakeEncoder()

  test("are dealt out whole, each once, and nobody gets more than the longest text above another", () => {
    const lengths = fc.array(fc.integer({ min: 1, max: 512 }), { minLength: 1, maxLength: 64 })
    fc.assert(
      fc.property(lengths, fc.integer({ min: 1, max: 5 }), (all, count) => {
        const members = Array.from({ length: count }, () => memberOf(encoder))
        const shares = balance(members, all.map(text), "batch")
        expect(shares.flatMap(({ indices }) => indices).sort((a, b) => a - b)).toEqual(
          all.map((_, index) => index),
        )
        for (const { member, indices, tokens } of shares) {
          expect(tokens).toBe(indices.reduce((sum, index) => sum + all[index]!, 0))
          expect(member.tokens).toEqual({ realtime: 0, batch: tokens })
        }
        const held = members.map(({ tokens }) => tokens.batch)
        expect(Math.max(...held) - Math.min(...held)).toBeLessThanOrEqual(Math.max(...all))
      }),
    )
  })

  test("go to those that have least to do; what batches have does not keep real time away", () => {
    const [idle, busy, bulk] = [
      memberOf(encoder),
      memberOf(encoder, { realtime: 30 }),
      memberOf(encoder, { batch: 500 }),
    ]
    expect(balance([busy, bulk], [text(8)], "realtime")[0]!.member).toBe(bulk)
    expect(balance([busy, bulk], [text(8)], "batch")[0]!.member).toBe(busy)
    expect(balance([bulk, idle], [text(8)], "realtime")[0]!.member).toBe(idle)
  })
})

describe("a team", () => {
  test("answers each text under its own place, whoever embedded it", async () => {
    const [a, b] = [fakeEncoder(), fakeEncoder()]
    const pool = makeEncoderPool([a.encoder, b.encoder])
    const answers = await Effect.runPromise(
      Stream.runCollect(pool.run([5, 90, 7, 60, 40].map(text), options())),
    )
    expect([...answers].sort((x, y) => x[0]! - y[0]!)).toEqual([
      [0, 5],
      [1, 90],
      [2, 7],
      [3, 60],
      [4, 40],
    ])
    expect([a.given, b.given]).toEqual([[[90, 7, 5]], [[60, 40]]])
  })

  test("leaves out an engine that takes nothing, and fails when none takes anything", async () => {
    const [closed, open] = [fakeEncoder({ refusal: "model_loading" }), fakeEncoder()]
    const pool = makeEncoderPool([closed.encoder, open.encoder])
    await Effect.runPromise(pool.availableFor(options()))
    await Effect.runPromise(Stream.runDrain(pool.run([text(3), text(4)], options())))
    expect([closed.given, open.given]).toEqual([[], [[4, 3]]])
    const none = makeEncoderPool([closed.encoder, closed.encoder])
    for (const effect of [
      none.availableFor(options()),
      Stream.runDrain(none.run([text(3)], options())),
    ])
      expect(await Effect.runPromise(Effect.flip(effect))).toMatchObject({ code: "model_loading" })
  })

  test("refuses as the engine that is likeliest to take the request soon", async () => {
    const engineOf = (refusal: "model_loading" | "backend_busy" | "backend_error") =>
      fakeEncoder({ refusal }).encoder
    const codeOf = (...engines: readonly Encoder[]) =>
      Effect.runPromise(
        Effect.map(
          Effect.flip(makeEncoderPool(engines).availableFor(options())),
          ({ code }) => code,
        ),
      )
    expect(
      await codeOf(engineOf("backend_error"), engineOf("model_loading"), engineOf("backend_busy")),
    ).toBe("backend_busy")
    expect(await codeOf(engineOf("backend_error"), engineOf("model_loading"))).toBe("model_loading")
  })

  test("gives a text that comes alone to the engine with all threads, while nothing else is read", async () => {
    const [solo, a, b] = [fakeEncoder(), fakeEncoder({ answers: false }), fakeEncoder()]
    const pool = makeEncoderPool([a.encoder, b.encoder], solo.encoder)
    const run = (...lengths: readonly number[]) =>
      Stream.runDrain(pool.run(lengths.map(text), options()))
    await Effect.runPromise(run(5))
    await Effect.runPromise(run(6))
    expect([solo.given, a.given, b.given]).toEqual([[[5], [6]], [], []])
    const going = Effect.runFork(run(9, 8))
    await expect.poll(() => [a.given, b.given]).toEqual([[[9]], [[8]]])
    await Effect.runPromise(run(7))
    expect([solo.given, b.given]).toEqual([
      [[5], [6]],
      [[8], [7]],
    ])
    await Effect.runPromise(Fiber.interrupt(going))
    await Effect.runPromise(run(4))
    expect(solo.given.at(-1)).toEqual([4])
    expect(pool.stats()).toEqual({ restarts: 3 })
  })

  test("reads a second text beside the engine with all threads, or in its place while it is down", async () => {
    const [solo, other] = [fakeEncoder({ answers: false }), fakeEncoder()]
    const pool = makeEncoderPool([other.encoder], solo.encoder)
    const run = (length: number) => Stream.runDrain(pool.run([text(length)], options()))
    const going = Effect.runFork(run(5))
    await expect.poll(() => solo.given).toEqual([[5]])
    await Effect.runPromise(run(6))
    expect(other.given).toEqual([[6]])
    await Effect.runPromise(Fiber.interrupt(going))
    const down = fakeEncoder({ refusal: "model_loading" })
    const without = makeEncoderPool([other.encoder], down.encoder)
    await Effect.runPromise(Stream.runDrain(without.run([text(7)], options())))
    expect([down.given, other.given]).toEqual([[], [[6], [7]]])
  })

  test("without texts answers nothing", async () => {
    expect(
      await Effect.runPromise(
        Stream.runCollect(makeEncoderPool([fakeEncoder().encoder]).run([], options())),
      ),
    ).toEqual([])
  })

  test("reports of each stage the longest time of its engines", async () => {
    const timed = (queueMs: readonly number[], prefillMs: number): Encoder => {
      const times = [
        ...queueMs.map((durationMs) => ({ type: "time", stage: "queue", durationMs }) as const),
        { type: "time", stage: "prefill", durationMs: prefillMs } as const,
      ]
      return {
        ...fakeEncoder().encoder,
        run: (_, { translate }) =>
          Stream.fromIterable(times.flatMap((event) => translate(event) ?? [])),
      }
    }
    const sums = { queue: 0, prefill: 0, decode: 0, encode: 0, denoise: 0 }
    const add = (event: EmbedJobEvent) => {
      if (event.type === "time") sums[event.stage] += event.durationMs
      return undefined
    }
    const pool = makeEncoderPool([timed([2, 5], 40), timed([1, 3], 60)])
    await Effect.runPromise(
      Stream.runDrain(pool.run([text(9), text(8)], { ...options(), translate: add })),
    )
    expect(sums).toMatchObject({ queue: 7, prefill: 60, decode: 0 })
  })

  test("an engine that has answered has nothing to do, though the request goes on", async () => {
    const [slow, quick] = [fakeEncoder({ answers: false }), fakeEncoder()]
    const pool = makeEncoderPool([slow.encoder, quick.encoder])
    const going = Effect.runFork(Stream.runDrain(pool.run([text(60), text(50)], options())))
    await expect.poll(() => [slow.given, quick.given]).toEqual([[[60]], [[50]]])
    await Effect.runPromise(Stream.runDrain(pool.run([text(20), text(20)], options())))
    expect(quick.given).toEqual([[50], [20, 20]])
    await Effect.runPromise(Fiber.interrupt(going))
  })

  test("forgets what it gave when it is answered, and when the request is given up", async () => {
    const [slow, quick] = [fakeEncoder({ answers: false }), fakeEncoder()]
    const pool = makeEncoderPool([slow.encoder, quick.encoder])
    const left = Effect.runFork(Stream.runDrain(pool.run([text(9)], options())))
    await expect.poll(() => slow.given).toEqual([[9]])
    await Effect.runPromise(Stream.runDrain(pool.run([text(5)], options())))
    await Effect.runPromise(Stream.runDrain(pool.run([text(5)], options())))
    expect(quick.given).toEqual([[5], [5]])
    expect(
      Exit.isFailure(
        await Effect.runPromise(Effect.andThen(Fiber.interrupt(left), Fiber.await(left))),
      ),
    ).toBe(true)
    const next = Effect.runFork(Stream.runDrain(pool.run([text(5)], options())))
    await expect.poll(() => slow.given).toEqual([[9], [5]])
    await Effect.runPromise(Fiber.interrupt(next))
  })
})
