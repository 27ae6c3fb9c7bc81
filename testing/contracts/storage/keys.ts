import { Effect, Stream } from "effect"
import { expect } from "vitest"
import type { StorageCases } from "../storage.ts"
import { getText, listAll, listKeys, putText } from "./bytes.ts"

const badKeys = [
  "",
  "/",
  "a/",
  "/a",
  "a//b",
  ".",
  "..",
  "../a",
  "a/../b",
  "a/./b",
  "a b",
  "ä",
  "a\\b",
  "a\0b",
  "a\n",
  "a~",
  "%2e%2e/a",
  `${"s".repeat(201)}`,
  `${"a/".repeat(256)}a`,
]

const put = (storage: Parameters<typeof putText>[0], keys: readonly string[]) =>
  Effect.forEach(keys, (key) => putText(storage, key, key))

export const storageKeyCases: StorageCases = {
  "lets a key be the folder of another": ({ storage }) =>
    Effect.gen(function* () {
      const keys = ["a", "a/b", "a/b/c", "a/b/c/d"]
      yield* put(storage, keys)
      for (const key of keys) expect(yield* getText(storage, key)).toBe(key)
      yield* storage.remove("a/b")
      expect(yield* listKeys(storage)).toEqual(["a", "a/b/c", "a/b/c/d"])
      yield* put(storage, ["a/b"])
      yield* Effect.forEach(["a/b/c/d", "a/b/c", "a"], (key) => storage.remove(key))
      expect(yield* listKeys(storage)).toEqual(["a/b"])
      expect(yield* getText(storage, "a/b")).toBe("a/b")
    }),

  "takes the longest keys, leading dots and names that differ in case": ({ storage }) =>
    Effect.gen(function* () {
      const long = [..."xyz"].map((letter) => letter.repeat(letter === "z" ? 110 : 200)).join("/")
      const keys = [long, ".hidden", "...", "-", "_/_", "A", "a"]
      expect(long).toHaveLength(512)
      yield* put(storage, keys)
      for (const key of keys) expect(yield* getText(storage, key)).toBe(key)
      expect(new Set(yield* listKeys(storage))).toEqual(new Set(keys))
    }),

  "refuses what is no key": ({ storage }) =>
    Effect.gen(function* () {
      for (const key of badKeys) {
        const errors = [
          yield* Effect.flip(putText(storage, key, "x")),
          yield* Effect.flip(getText(storage, key)),
          yield* Effect.flip(storage.stat(key)),
          yield* Effect.flip(storage.remove(key)),
        ]
        expect(errors.map((error) => error._tag)).toEqual([
          "PortError",
          "PortError",
          "PortError",
          "PortError",
        ])
      }
      expect(yield* listKeys(storage)).toEqual([])
    }),

  "lists in key order, with what stat says": ({ storage }) =>
    Effect.gen(function* () {
      const keys = [
        "a",
        "a-b",
        "a.b",
        "a/b",
        "a/b-c",
        "a/b/c",
        "a0",
        "aB",
        "a_",
        "aa/b",
        "b",
        "B/a",
        "0",
      ]
      yield* put(storage, keys.toReversed())
      const infos = yield* listAll(storage)
      expect(infos.map(({ key }) => key)).toEqual([...keys].sort())
      for (const info of infos) expect(info).toEqual(yield* storage.stat(info.key))
    }),

  "lists by any prefix": ({ storage }) =>
    Effect.gen(function* () {
      yield* put(storage, ["acc/f", "acc/f/1", "acc/f/2", "acc/g", "acc2/f", "other"])
      expect(yield* listKeys(storage, "acc/f/")).toEqual(["acc/f/1", "acc/f/2"])
      expect(yield* listKeys(storage, "acc/f")).toEqual(["acc/f", "acc/f/1", "acc/f/2"])
      expect(yield* listKeys(storage, "ac")).toEqual([
        "acc/f",
        "acc/f/1",
        "acc/f/2",
        "acc/g",
        "acc2/f",
      ])
      expect(yield* listKeys(storage, "acc/f/1")).toEqual(["acc/f/1"])
      for (const nothing of [
        "acc/f/1/",
        "x",
        "x/",
        "/",
        "/acc",
        "../../",
        "acc/../other",
        "acc//",
        "a\0",
        "~",
      ])
        expect(yield* listKeys(storage, nothing)).toEqual([])
    }),

  "lets a sweeper remove while it lists, and stop early": ({ storage }) =>
    Effect.gen(function* () {
      const keys = Array.from({ length: 60 }, (_, i) => `sweep/${i % 7}/${i}`)
      yield* put(storage, keys)
      expect((yield* Stream.runCollect(Stream.take(storage.list("sweep/"), 5))).length).toBe(5)
      const seen: string[] = []
      yield* Stream.runForEach(storage.list("sweep/"), ({ key }) =>
        Effect.andThen(
          Effect.sync(() => void seen.push(key)),
          storage.remove(key),
        ),
      )
      expect(seen).toEqual([...keys].sort())
      expect(yield* listKeys(storage)).toEqual([])
    }),

  "works on many keys of one folder at once": ({ storage }) =>
    Effect.gen(function* () {
      const turn = (n: number) =>
        Effect.andThen(
          putText(storage, `shared/deep/${n}`, "x"),
          storage.remove(`shared/deep/${n}`),
        )
      const turns = Array.from({ length: 300 }, (_, n) => turn(n % 3))
      yield* Effect.forEach(turns, (work) => work, { concurrency: 6 })
      expect(yield* listKeys(storage)).toEqual([])
    }),
}
