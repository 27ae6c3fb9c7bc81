import { Effect, Stream } from "effect"
import { expect } from "vitest"
import type { StorageCases } from "../storage.ts"
import { getBytes, getText, listAll, putText, roomy } from "./bytes.ts"

export const storageReadCases: StorageCases = {
  "gives back what was put": ({ storage }) =>
    Effect.gen(function* () {
      const put = yield* putText(storage, "files/hello.txt", "hel", "", "lo")
      expect(put).toMatchObject({ key: "files/hello.txt", bytes: 5 })
      expect(put.etag).not.toBe("")
      expect(yield* storage.stat("files/hello.txt")).toEqual(put)
      expect(yield* getText(storage, "files/hello.txt")).toBe("hello")
    }),

  "keeps an empty blob": ({ storage }) =>
    Effect.gen(function* () {
      expect(yield* putText(storage, "empty")).toMatchObject({ bytes: 0 })
      expect(yield* getText(storage, "empty")).toBe("")
      expect(yield* getText(storage, "empty", { from: 0, to: 9 })).toBe("")
    }),

  "streams a large blob in pieces": ({ storage }) =>
    Effect.gen(function* () {
      const whole = Buffer.from(
        Uint8Array.from({ length: 3_000_001 }, (_, i) => (i * 31 + (i >> 8)) & 255),
      )
      const pieces = Stream.range(0, 42).pipe(
        Stream.map((i) => new Uint8Array(whole.subarray(i * 70_001, (i + 1) * 70_001))),
      )
      expect((yield* storage.put("large", pieces, whole.length)).bytes).toBe(whole.length)
      expect((yield* getBytes(storage, "large")).equals(whole)).toBe(true)
      expect(
        (yield* getBytes(storage, "large", { from: 999_999, to: 2_000_000 })).equals(
          whole.subarray(999_999, 2_000_001),
        ),
      ).toBe(true)
    }),

  "reads ranges, both ends included": ({ storage }) =>
    Effect.gen(function* () {
      yield* putText(storage, "digits", "0123456789")
      expect(yield* getText(storage, "digits", { from: 0, to: 0 })).toBe("0")
      expect(yield* getText(storage, "digits", { from: 3, to: 5 })).toBe("345")
      expect(yield* getText(storage, "digits", { from: 7 })).toBe("789")
      expect(yield* getText(storage, "digits", { from: 9, to: 9 })).toBe("9")
    }),

  "cuts a range at the end of the blob": ({ storage }) =>
    Effect.gen(function* () {
      yield* putText(storage, "digits", "0123456789")
      expect(yield* getText(storage, "digits", { from: 8, to: 1_000_000 })).toBe("89")
      expect(yield* getText(storage, "digits", { from: 10 })).toBe("")
      expect(yield* getText(storage, "digits", { from: 10, to: 12 })).toBe("")
      expect(yield* getText(storage, "digits", { from: 5, to: 4 })).toBe("")
    }),

  "changes the etag with the content, and only by a put": ({ storage }) =>
    Effect.gen(function* () {
      const etags = new Set<string>()
      for (const text of ["one", "two", "six"]) {
        const { etag } = yield* putText(storage, "k", text)
        yield* putText(storage, "other", text)
        expect((yield* storage.stat("k")).etag).toBe(etag)
        expect((yield* listAll(storage, "k"))[0]?.etag).toBe(etag)
        expect(etags).not.toContain(etag)
        etags.clear()
        etags.add(etag)
      }
    }),

  "runs a get's stream again from its start": ({ storage }) =>
    Effect.gen(function* () {
      yield* putText(storage, "twice", "abc")
      const stream = storage.get("twice")
      const both = Stream.concat(stream, stream)
      expect(Buffer.concat([...(yield* Stream.runCollect(both))]).toString()).toBe("abcabc")
    }),

  "lets a reader stop early": ({ storage }) =>
    Effect.gen(function* () {
      yield* storage.put(
        "long",
        Stream.range(1, 40).pipe(Stream.map(() => new Uint8Array(100_000))),
        roomy,
      )
      expect((yield* Stream.runCollect(Stream.take(storage.get("long"), 1))).length).toBe(1)
      yield* storage.remove("long")
    }),
}
