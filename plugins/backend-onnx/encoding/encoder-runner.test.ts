import { describe, expect, test } from "vitest"
import type { Session } from "../onnx/onnx-session.ts"
import { Tensor } from "../onnx/runtime.ts"
import type { Priority } from "../worker/protocol.ts"
import type { RunningJob } from "../worker/scheduler.ts"
import { EmbedJob, type EmbedJobEvent, tokensOf } from "./embed-job.ts"
import { chooseTexts, EncoderRunner, textFeeds } from "./encoder-runner.ts"

const text = (length: number, token = 7) => new Int32Array(length).fill(token)

const runningWith = (
  id: number,
  lengths: readonly number[],
  { priority = "realtime" as Priority, token = 7 } = {},
) => {
  const events: EmbedJobEvent[] = []
  const texts = lengths.map((length) => text(length, token))
  const job = new EmbedJob(texts, tokensOf, (event) => events.push(event))
  const running: RunningJob<EmbedJob<Int32Array>> = { id, account: `account ${id}`, priority, job }
  return { running, events }
}
const stepTokens = 256
const choose = (
  leader: RunningJob<EmbedJob<Int32Array>>,
  running: readonly RunningJob<EmbedJob<Int32Array>>[],
) => chooseTexts(leader, running, stepTokens)
const lengthsOf = (chosen: ReturnType<typeof chooseTexts>) =>
  chosen.map(({ of, length }) => [of.id, length])

describe("a step takes", () => {
  test("texts of like length: of the request whose turn it is, and of others", () => {
    const leader = runningWith(1, [70, 40, 42]).running
    const [other, third] = [
      runningWith(2, [41, 200]).running,
      runningWith(3, [50, 51, 30, 29]).running,
    ]
    expect(lengthsOf(choose(leader, [other, leader, third]))).toEqual([
      [1, 40],
      [1, 42],
      [2, 41],
      [3, 30],
      [3, 50],
    ])
  })

  test("no more than is done in some tens of milliseconds, padding included", () => {
    const lengths = Array.from({ length: 64 }, (_, i) => 1 + ((i * 37) % 200))
    for (const own of lengths) {
      const all = [
        runningWith(1, [own]).running,
        ...lengths.map((length, i) => runningWith(i + 2, [length]).running),
      ]
      const chosen = choose(all[0]!, all)
      expect(chosen.length).toBeLessThanOrEqual(16)
      expect(
        chosen.length === 1 ||
          chosen.length * Math.max(...chosen.map(({ length }) => length)) <= stepTokens,
      ).toBe(true)
      expect(chosen[0]!.of).toBe(all[0])
    }
    expect(choose(runningWith(1, [500]).running, [runningWith(2, [500]).running])).toHaveLength(1)
  })

  test("the leader's own texts first, and one of each other request before a second one of any", () => {
    const leader = runningWith(1, [12, 16, 17]).running
    const bulk = runningWith(2, new Array(2_048).fill(12)).running
    const small = [runningWith(3, [13]).running, runningWith(4, [14, 12]).running]
    const chosen = lengthsOf(choose(leader, [bulk, leader, ...small]))
    expect(chosen.slice(0, 7)).toEqual([
      [1, 12],
      [1, 16],
      [1, 17],
      [2, 12],
      [4, 12],
      [3, 13],
      [2, 12],
    ])
  })

  test("nothing of batches where somebody waits, and nothing of those who wait for a batch", () => {
    const [realtime, batch] = [
      runningWith(1, [20]).running,
      runningWith(2, [20], { priority: "batch" }).running,
    ]
    const more = [runningWith(3, [20]).running, runningWith(4, [20], { priority: "batch" }).running]
    expect(choose(realtime, [realtime, batch, ...more]).map(({ of }) => of.id)).toEqual([1, 3])
    expect(choose(batch, [realtime, batch, ...more]).map(({ of }) => of.id)).toEqual([2, 4])
  })
})

/**
 * A fake session: each vector holds the first token and the length of its text; fails where a token
 * is 13.
 */
const fakeSession = () => {
  const steps: number[] = []
  const session: Session = {
    inputs: [],
    outputs: [],
    release: async () => {},
    run: async ({ input_ids, lengths }) => {
      const [rows, width] = input_ids!.dims as [number, number]
      steps.push(rows)
      const ids = Array.from(input_ids!.data as BigInt64Array, Number)
      if (ids.includes(13)) throw new Error("thirteen")
      const vectors = Array.from({ length: rows }, (_, row) => [
        ids[row * width]!,
        Number((lengths!.data as BigInt64Array)[row]),
      ])
      return { vectors: new Tensor("float32", Float32Array.from(vectors.flat()), [rows, 2]) }
    },
  }
  return { session, steps }
}
const runAll = async (session: Session, all: readonly RunningJob<EmbedJob<Int32Array>>[]) => {
  const runner = new EncoderRunner(session, stepTokens, textFeeds(session))
  const ended: { readonly id: number; readonly cause?: unknown }[] = []
  let left = all
  while (left.length) {
    for (const { of, ...end } of await runner.step(left, ([first]) => first!))
      ended.push({ id: of.id, ...end })
    left = left.filter(({ id }) => !ended.some((end) => end.id === id))
  }
  return ended
}

test("each request gets its vectors, and ends once, with its time", async () => {
  const all = [
    runningWith(1, [3, 20, 3], { token: 1 }),
    runningWith(2, [3], { token: 2 }),
    runningWith(3, [20, 21], { token: 3 }),
  ]
  const { session, steps } = fakeSession()
  const ended = await runAll(
    session,
    all.map(({ running }) => running),
  )
  expect(steps).toEqual([3, 3])
  expect(ended).toEqual([{ id: 2 }, { id: 1 }, { id: 3 }])
  const vectors = (events: readonly EmbedJobEvent[]): readonly unknown[] =>
    events.map((event) =>
      event.type === "vector" ? [event.index, [...event.vector]] : event.stage,
    )
  expect(vectors(all[0]!.events)).toEqual([
    "queue",
    [0, [1, 3]],
    [2, [1, 3]],
    [1, [1, 20]],
    "prefill",
  ])
  expect(vectors(all[1]!.events)).toEqual(["queue", [0, [2, 3]], "prefill"])
  expect(vectors(all[2]!.events)).toEqual(["queue", [0, [3, 20]], [1, [3, 21]], "prefill"])
})

test("batches get the steps in which nobody else waits, and one in 16", async () => {
  const batch = runningWith(1, new Array(64).fill(200), { priority: "batch" })
  const urgent = runningWith(2, new Array(32).fill(200))
  const { session } = fakeSession()
  const runner = new EncoderRunner(session, stepTokens, textFeeds(session))
  const led: number[] = []
  const step = (running: readonly RunningJob<EmbedJob<Int32Array>>[]) =>
    runner.step(running, ([first]) => {
      led.push(first!.id)
      return first!
    })
  for (let i = 0; i < 32; i++) await step([batch.running, urgent.running])
  expect(led).toEqual(led.map((_, i) => (i % 16 === 15 ? 1 : 2)))
  await step([batch.running])
  expect(led.at(-1)).toBe(1)
})

test("the time until its first text comes into a step is time in the queue", async () => {
  const { running, events } = runningWith(1, [3, 200])
  await runAll(fakeSession().session, [running])
  expect(events.map((event) => (event.type === "time" ? event.stage : event.type))).toEqual([
    "queue",
    "vector",
    "vector",
    "prefill",
  ])
})

test("a request that fails takes nobody with it", async () => {
  const all = [runningWith(1, [3, 4]), runningWith(2, [3], { token: 13 }), runningWith(3, [4])]
  const ended = await runAll(
    fakeSession().session,
    all.map(({ running }) => running),
  )
  expect(ended).toEqual([{ id: 1 }, { id: 2, cause: new Error("thirteen") }, { id: 3 }])
  expect(all[0]!.events.map(({ type }) => type)).toEqual(["time", "vector", "vector", "time"])
})
