import { appendFileSync, mkdtempSync, readFileSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { Effect, Stream } from "effect"
import { afterEach, expect, it } from "vitest"
import type { Storage } from "../../core/ports/storage.ts"
import { fakeStorage } from "../../testing/fakes/storage.ts"
import { openJournal } from "./copy-journal.ts"
import { copyPass, maxFailures } from "./copy-storage.ts"

const closers: (() => unknown)[] = []
afterEach(() => {
  for (const close of closers.splice(0).reverse()) close()
})
const newJournal = (): string => {
  const folder = mkdtempSync(join(tmpdir(), "rakit-copy-"))
  closers.push(() => rmSync(folder, { recursive: true, force: true }))
  return join(folder, "journal.jsonl")
}
const put = (storage: Storage, key: string, text: string) =>
  Effect.runPromise(storage.put(key, Stream.make(Buffer.from(text)), 1000))
const textOf = async (storage: Storage, key: string) =>
  Buffer.concat(await Effect.runPromise(Stream.runCollect(storage.get(key)))).toString()
const keysOf = async (storage: Storage) =>
  (await Effect.runPromise(Stream.runCollect(storage.list("")))).map(({ key }) => key)

const more = { overwrite: false, verify: false }
const pass = (from: Storage, to: Storage, file: string, given: Partial<typeof more> = {}) =>
  Effect.runPromise(
    Effect.scoped(
      Effect.flatMap(openJournal(file), (journal) =>
        copyPass({ from, to, journal, ...more, ...given }, 4, () => {}),
      ),
    ),
  )
const outcomes = async (...given: Parameters<typeof pass>) => (await pass(...given)).outcomes

it("copies what is missing, then what is new or was replaced, and leaves what only the target has", async () => {
  const [from, to, file] = [fakeStorage(), fakeStorage(), newJournal()]
  for (let n = 0; n < 30; n++) await put(from, `files/${n}`, `text ${n}`)
  await put(to, "files/0-other", "kept")
  expect(await pass(from, to, file)).toMatchObject({
    ...{ seen: 30, extra: 1, failures: [] },
    outcomes: { copied: 30, same: 0 },
  })
  expect(await outcomes(from, to, file)).toMatchObject({ copied: 0, same: 30 })
  await put(from, "files/7", "replaced")
  await put(from, "new", "new")
  expect(await outcomes(from, to, file)).toMatchObject({ copied: 2, same: 29 })
  expect([await textOf(to, "files/7"), await textOf(to, "files/0-other")]).toEqual([
    "replaced",
    "kept",
  ])
  expect((await keysOf(to)).filter((key) => key.includes("probe"))).toEqual([])
})

it("goes on without its journal, or with a torn one, by comparing", async () => {
  const [from, to, file] = [fakeStorage(), fakeStorage(), newJournal()]
  for (const key of ["a", "b", "c"]) await put(from, key, key)
  await pass(from, to, file)
  expect(await outcomes(from, to, newJournal())).toMatchObject({ copied: 0, same: 3 })
  appendFileSync(file, '{"key":"a","from":"9')
  await put(from, "d", "d")
  expect(await outcomes(from, to, file)).toMatchObject({ copied: 1, same: 3 })
  expect(readFileSync(file, "utf8").trim().split("\n").at(-1)).toContain('"key":"d"')
})

it("refuses another blob under the same key unless it may overwrite", async () => {
  const [from, to, file] = [fakeStorage(), fakeStorage(), newJournal()]
  await put(from, "a", "mine")
  await put(from, "b", "fine")
  await put(to, "a", "else")
  const { failures, outcomes: found } = await pass(from, to, file)
  expect(failures).toEqual([expect.stringMatching(/^a: the target has another blob.*--overwrite/)])
  expect([found.copied, await textOf(to, "a")]).toEqual([1, "else"])
  expect(await outcomes(from, to, file, { overwrite: true })).toMatchObject({ copied: 1 })
  expect(await textOf(to, "a")).toBe("mine")
})

it("removes a copy that comes back otherwise, and says so", async () => {
  const [from, to] = [fakeStorage(), fakeStorage()]
  await put(from, "a", "right")
  const bent: Storage = {
    ...to,
    get: (key, range) =>
      key === "a" ? Stream.make(new Uint8Array(Buffer.from("wrong"))) : to.get(key, range),
  }
  expect((await pass(from, bent, newJournal())).failures).toEqual([
    expect.stringContaining("a: 5 bytes were sent and 5 other ones came back"),
  ])
  expect(await keysOf(to)).toEqual([])
})

it("does not spread damage: a source with the old etag and other bytes", async () => {
  const [from, to, file] = [fakeStorage(), fakeStorage(), newJournal()]
  await put(from, "a", "right")
  await pass(from, to, file)
  const bent: Storage = { ...from, get: () => Stream.make(new Uint8Array(Buffer.from("wrong"))) }
  expect((await pass(bent, to, file, { verify: true })).failures).toEqual([
    expect.stringMatching(/^a: .*it is damaged there/),
  ])
  expect(await textOf(to, "a")).toBe("right")
  const short: Storage = { ...from, get: () => Stream.make(new Uint8Array(2)) }
  expect((await pass(short, fakeStorage(), newJournal())).failures).toEqual([
    "a: the source says 5 bytes and sends 2.",
  ])
})

it("finds a damaged copy with --verify, and copies it again", async () => {
  const [from, to, file] = [fakeStorage(), fakeStorage(), newJournal()]
  await put(from, "a", "right")
  await pass(from, to, file)
  let isBent = true
  const bent: Storage = {
    ...to,
    put: (key, body, most) => {
      if (key === "a") isBent = false
      return to.put(key, body, most)
    },
    get: (key, range) =>
      key === "a" && isBent
        ? Stream.make(new Uint8Array(Buffer.from("wrong")))
        : to.get(key, range),
  }
  expect(await outcomes(from, bent, file)).toMatchObject({ same: 1 })
  expect(await outcomes(from, bent, file, { verify: true })).toMatchObject({ copied: 1 })
})

it("counts blobs that go or change while it runs", async () => {
  const from = fakeStorage()
  await put(from, "gone", "1")
  await put(from, "changed", "1")
  const busy: Storage = {
    ...from,
    get: (key, range) =>
      Stream.unwrap(
        Effect.map(
          key === "gone"
            ? from.remove(key)
            : from.put(key, Stream.make(new Uint8Array(Buffer.from("22"))), 9),
          () => from.get(key, range),
        ),
      ),
    list: (prefix) =>
      Stream.fromIterable([
        { key: "changed", bytes: 1, etag: "2" },
        { key: "gone", bytes: 1, etag: "1" },
      ]).pipe(Stream.filter(({ key }) => key.startsWith(prefix))),
  }
  const sum = await pass(busy, fakeStorage(), newJournal())
  expect(sum).toMatchObject({ failures: [], outcomes: { removed: 1, replaced: 1, copied: 0 } })
})

it("ends at a full target, after many failures, and where both storages are one", async () => {
  const from = fakeStorage()
  for (let n = 0; n < 50; n++) await put(from, `b/${n}`, "x".repeat(20))
  const full = fakeStorage(200)
  await expect(pass(from, full, newJournal())).rejects.toMatchObject({ _tag: "StorageFull" })
  const other = fakeStorage()
  for (let n = 0; n < 50; n++) await put(other, `b/${n}`, "other")
  await expect(pass(from, other, newJournal())).rejects.toThrow(
    new RegExp(`Stopped after ${maxFailures} blobs`),
  )
  await expect(pass(from, from, newJournal())).rejects.toThrow(/name the same storage/)
  // a folder of the same bucket
  const inside: Storage = {
    ...from,
    put: (key, body, most) => from.put(`sub/${key}`, body, most),
    remove: (key) => from.remove(`sub/${key}`),
    list: () => Stream.empty,
  }
  await expect(pass(from, inside, newJournal())).rejects.toThrow(/lies inside the source/)
})
