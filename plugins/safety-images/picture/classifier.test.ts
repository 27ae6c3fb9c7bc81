import { readFileSync } from "node:fs"
import { join } from "node:path"
import { Deferred, Effect, Fiber } from "effect"
import sharp from "sharp"
import { expect, it } from "vitest"
import { fakeWorkers } from "../../../testing/fakes/workers.ts"
import { plainImage, writtenPng } from "../../../testing/images.ts"
import { type Classes, isExplicit } from "./classes.ts"
import { makeClassifier } from "./classifier.ts"
import { counted, endCalls, newCallCount } from "./native-calls.ts"

const fixtures = join(import.meta.dirname, "../fixtures")
const reference = JSON.parse(readFileSync(join(fixtures, "reference.json"), "utf8")) as Record<
  string,
  Record<string, number>
>
const classify = (bytes: Uint8Array) =>
  Effect.runPromise(
    Effect.scoped(
      Effect.flatMap(makeClassifier(fakeWorkers()), (classifier) => classifier.classify(bytes)),
    ),
  )

it.each(Object.keys(reference))("says of %s what nsfwjs says", async (name) => {
  const found = await classify(readFileSync(join(fixtures, "pictures", name)))
  for (const [label, wanted] of Object.entries(reference[name]!))
    expect(found[label.toLowerCase() as keyof typeof found], label).toBeCloseTo(wanted, 4)
})

it("reads grey, transparent and 16 bit pictures", async () => {
  const grey = await plainImage(64, 64, "#808080").toColourspace("grey16").png().toBuffer()
  const clear = await sharp({
    create: { width: 64, height: 64, channels: 4, background: { r: 0, g: 0, b: 0, alpha: 0 } },
  })
    .png()
    .toBuffer()
  const white = await plainImage(64, 64, "white").png().toBuffer()
  expect((await classify(grey)).porn).toBeLessThan(0.5)
  expect(await classify(clear)).toEqual(await classify(white))
})

it("fails for what is no PNG file, or too large a one", async () => {
  const jpeg = await plainImage(8, 8, "red").jpeg().toBuffer()
  const large = writtenPng(5_000, 5_000)
  for (const bytes of [
    jpeg,
    large,
    (await plainImage(8, 8, "red").png().toBuffer()).subarray(0, 60),
    new Uint8Array(),
  ])
    await expect(classify(bytes)).rejects.toThrow()
})

it("judges each class by its threshold, and none by 1", () => {
  const classes = { drawing: 0, hentai: 0.5, neutral: 0, porn: 0.3, sexy: 1 }
  expect(isExplicit(classes, { porn: 0.31, hentai: 0.51, sexy: 1 })).toBe(false)
  expect(isExplicit(classes, { porn: 0.3, hentai: 0.51, sexy: 1 })).toBe(true)
  expect(isExplicit(classes, { porn: 0.31, hentai: 0.5, sexy: 1 })).toBe(true)
  expect(isExplicit(classes, { porn: 1, hentai: 1, sexy: 0.9 })).toBe(true)
})

it("lets a picture be judged to its end when its caller leaves", async () => {
  const limits: (number | undefined)[] = []
  let isAbandoned = false
  const test = Effect.gen(function* () {
    const release = yield* Deferred.make<Classes>()
    const run = <Input, Output>(_module: URL, _input: Input, limitMs?: number) => {
      limits.push(limitMs)
      return (Deferred.await(release) as unknown as Effect.Effect<Output>).pipe(
        Effect.onInterrupt(() =>
          Effect.sync(() => {
            isAbandoned = true
          }),
        ),
      )
    }
    const classifier = yield* makeClassifier({ run })
    const judged = yield* Effect.forkChild(classifier.classify(new Uint8Array()), {
      startImmediately: true,
    })
    const left = yield* Effect.forkChild(Fiber.interrupt(judged), { startImmediately: true })
    yield* Deferred.succeed(release, {} as Classes)
    yield* Fiber.join(left)
  })
  await Effect.runPromise(Effect.scoped(test))
  expect([isAbandoned, limits]).toEqual([false, [Number.POSITIVE_INFINITY]])
})

it("begins no call of a thread when the end has begun", async () => {
  const calls = newCallCount()
  expect(await counted(calls, async () => "done")).toBe("done")
  endCalls(calls, 1_000)
  await expect(counted(calls, async () => "done")).rejects.toThrow("the server ends")
  expect([...calls]).toEqual([1, 0])
})

it("waits at the end for a call that runs, for a while", () => {
  const calls = newCallCount()
  void counted(calls, () => new Promise(() => {}))
  endCalls(calls, 5)
  expect([...calls]).toEqual([1, 1])
})
