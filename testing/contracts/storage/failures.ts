import { Deferred, Effect, Exit, Fiber, Stream } from "effect"
import { expect } from "vitest"
import type { Storage } from "../../../core/ports/storage.ts"
import type { StorageCases } from "../storage.ts"
import { getBytes, getText, listKeys, putText, roomy, textBody } from "./bytes.ts"

const tagOf = <A, E extends { readonly _tag: string }>(effect: Effect.Effect<A, E>) =>
  Effect.map(Effect.flip(effect), ({ _tag }) => _tag)

/** A body that emits its first bytes and then never ends. */
const stalled = () => {
  const started = Deferred.makeUnsafe<void>()
  const body = Stream.concat(
    textBody("first"),
    Stream.fromEffectDrain(Effect.andThen(Deferred.succeed(started, undefined), Effect.never)),
  )
  return { started: Deferred.await(started), body }
}

const expectUntouched = (storage: Storage) =>
  Effect.gen(function* () {
    expect(yield* listKeys(storage)).toEqual(["old"])
    expect(yield* getText(storage, "old")).toBe("old text")
    expect(yield* tagOf(storage.stat("new"))).toBe("BlobMissing")
  })

/** Puts `body` under an existing key and a new one; both must fail and change nothing. */
const expectRefused = <E>(storage: Storage, body: Stream.Stream<Uint8Array, E>, maxBytes: number) =>
  Effect.gen(function* () {
    yield* putText(storage, "old", "old text")
    const errors = [
      yield* Effect.flip(storage.put("old", body, maxBytes)),
      yield* Effect.flip(storage.put("new", body, maxBytes)),
    ]
    yield* expectUntouched(storage)
    return errors
  })

export const storageFailureCases: StorageCases = {
  "says that a blob is missing": ({ storage }) =>
    Effect.gen(function* () {
      expect(yield* Effect.flip(storage.stat("no/such"))).toMatchObject({
        _tag: "BlobMissing",
        key: "no/such",
      })
      expect(yield* Effect.flip(getText(storage, "no/such"))).toMatchObject({
        _tag: "BlobMissing",
        key: "no/such",
      })
      expect(yield* tagOf(getText(storage, "no/such", { from: 3 }))).toBe("BlobMissing")
    }),

  "removes, and does not mind what is not there": ({ storage }) =>
    Effect.gen(function* () {
      yield* putText(storage, "a/b/c", "x")
      yield* storage.remove("a/b/c")
      yield* storage.remove("a/b/c")
      yield* storage.remove("never/was")
      expect(yield* tagOf(storage.stat("a/b/c"))).toBe("BlobMissing")
      expect(yield* listKeys(storage)).toEqual([])
    }),

  "takes exactly maxBytes": ({ storage }) =>
    Effect.gen(function* () {
      expect((yield* storage.put("k", textBody("12", "345"), 5)).bytes).toBe(5)
      expect((yield* storage.put("none", textBody(), 0)).bytes).toBe(0)
    }),

  "refuses one byte more, and leaves nothing": ({ storage }) =>
    Effect.gen(function* () {
      const [error] = yield* expectRefused(storage, textBody("12", "3456"), 5)
      expect(error).toMatchObject({ _tag: "BlobTooLarge", key: "old", maxBytes: 5 })
    }),

  "stops reading a body that is too large": ({ storage }) =>
    Effect.gen(function* () {
      const endless = Stream.forever(textBody("0123456789"))
      expect(yield* tagOf(storage.put("k", endless, 1000))).toBe("BlobTooLarge")
    }),

  "fails with the body's own error, and leaves nothing": ({ storage }) =>
    Effect.gen(function* () {
      const torn = Stream.concat(textBody("half"), Stream.fail("the client left" as const))
      expect(yield* expectRefused(storage, torn, roomy)).toEqual([
        "the client left",
        "the client left",
      ])
    }),

  "leaves nothing when it is interrupted": ({ storage }) =>
    Effect.gen(function* () {
      yield* putText(storage, "old", "old text")
      for (const key of ["old", "new"]) {
        const { started, body } = stalled()
        const fiber = yield* Effect.forkChild(storage.put(key, body, roomy))
        yield* started
        yield* expectUntouched(storage)
        yield* Fiber.interrupt(fiber)
        expect(Exit.isFailure(yield* Fiber.await(fiber))).toBe(true)
      }
      yield* expectUntouched(storage)
    }),

  "gives a reader one version, whole": ({ storage }) =>
    Effect.gen(function* () {
      const filled = (byte: number) =>
        Stream.range(1, 40).pipe(Stream.map(() => new Uint8Array(50_000).fill(byte)))
      yield* storage.put("k", filled(1), roomy)
      let replaced = false
      const seen = new Set<number>()
      const replaceOnce = Effect.suspend(() => {
        if (replaced) return Effect.void
        replaced = true
        return storage.put("k", filled(2), roomy)
      })
      const note = (chunk: Uint8Array) =>
        Effect.andThen(
          Effect.sync(() => void seen.add(chunk[0]!).add(chunk.at(-1)!)),
          replaceOnce,
        )
      yield* Effect.exit(Stream.runForEach(storage.get("k"), note))
      expect([...seen]).toEqual([1])
      expect((yield* getBytes(storage, "k")).at(0)).toBe(2)
    }),

  "keeps one of several puts at once, whole": ({ storage }) =>
    Effect.gen(function* () {
      const letters = ["a", "b", "c", "d", "e", "f", "g", "h"]
      const infos = yield* Effect.forEach(
        letters,
        (letter) =>
          putText(storage, "same", ...Array.from({ length: 20 }, () => letter.repeat(1000))),
        { concurrency: "unbounded" },
      )
      const text = yield* getText(storage, "same")
      expect(letters.map((letter) => letter.repeat(20_000))).toContain(text)
      expect(infos.map(({ etag }) => etag)).toContain((yield* storage.stat("same")).etag)
    }),
}

export const storageFullCases: StorageCases = {
  "says when there is no room, and leaves nothing": ({ nearlyFull }) =>
    Effect.gen(function* () {
      if (nearlyFull === undefined) return
      const tooMuch = Stream.range(1, 64).pipe(Stream.map(() => new Uint8Array(65_536).fill(7)))
      const [error] = yield* expectRefused(nearlyFull, tooMuch, roomy)
      expect(error).toMatchObject({ _tag: "StorageFull", key: "old" })
      yield* nearlyFull.put("small", Stream.make(new Uint8Array(50_000)), roomy)
    }),
}
