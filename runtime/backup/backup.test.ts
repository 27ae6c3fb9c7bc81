import {
  appendFileSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { Effect, Stream } from "effect"
import { afterEach, expect, it } from "vitest"
import type { Migrations } from "../../core/ports/database.ts"
import type { Storage } from "../../core/ports/storage.ts"
import { fakeStorage } from "../../testing/fakes/storage.ts"
import { makeBlobCopy, restoreBlobs, verifyBlobs } from "./blobs.ts"
import { readLines, verifyFile, writeLines } from "./lines-file.ts"
import { whyNotThese } from "./load-database.ts"
import { type Manifest, manifestFile, readManifest, writeManifest } from "./manifest.ts"
import { migrationTableOf } from "./snapshot.ts"

const closers: (() => unknown)[] = []
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close()
})
const newFolder = (): string => {
  const folder = mkdtempSync(join(tmpdir(), "rakit-backup-"))
  closers.push(() => rmSync(folder, { recursive: true, force: true }))
  return folder
}
const silent = () => {}
const put = (storage: Storage, key: string, text: string) =>
  Effect.runPromise(storage.put(key, Stream.make(Buffer.from(text)), 1000))
const textOf = async (storage: Storage, key: string) =>
  Buffer.concat(await Effect.runPromise(Stream.runCollect(storage.get(key)))).toString()

it("a file of lines gives back what was written, and a changed one is refused", async () => {
  const folder = newFolder()
  const values = ["a\u2028b\n\u0001", null, ["ü", "\ud83d\ude00"], "x".repeat(200_000)]
  const lines = writeLines(folder, "some/values.gz")
  for (const value of values) await lines.write([value])
  const file = await lines.close()
  const read: unknown[] = []
  for await (const value of readLines(folder, file)) read.push(value)
  expect(read).toEqual(values)
  await verifyFile(folder, file)
  appendFileSync(join(folder, file.file), "x")
  await expect(verifyFile(folder, file)).rejects.toThrow(/values.gz was changed/)
  rmSync(join(folder, file.file))
  await expect(verifyFile(folder, file)).rejects.toThrow(/values.gz is missing/)
})

it("refuses a folder without a manifest, a changed one, and one of a newer rakit", async () => {
  const folder = newFolder()
  expect(() => readManifest(folder)).toThrow(/no finished backup/)
  writeFileSync(join(folder, manifestFile), "{")
  expect(() => readManifest(folder)).toThrow(/damaged/)
  writeFileSync(join(folder, manifestFile), '{"object":"rakit.backup","format":1}')
  expect(() => readManifest(folder)).toThrow(/damaged/)
  writeFileSync(join(folder, manifestFile), '{"format":2,"rakit":"9.0.0"}')
  expect(() => readManifest(folder)).toThrow(/newer rakit \(9.0.0/)
  const manifest: Manifest = {
    ...{ object: "rakit.backup", format: 1, rakit: "1.0.0", deployment: "test" },
    createdAt: "2026-11-23T00:00:00.000Z",
    blobs: { file: "blobs.jsonl.gz", bytes: 7, sha256: "00", count: 1, size: 5 },
  }
  await writeManifest(folder, manifest)
  expect(readManifest(folder)).toEqual(manifest)
  const text = readFileSync(join(folder, manifestFile), "utf8")
  for (const changed of [text.replace('"count": 1', '"count": 3'), text.replace("T00", "T01")]) {
    expect(changed).not.toBe(text)
    writeFileSync(join(folder, manifestFile), changed)
    expect(() => readManifest(folder)).toThrow(/manifest.json or .* was changed after/)
  }
  writeFileSync(join(folder, manifestFile), text)
  rmSync(join(folder, `${manifestFile}.sha256`))
  expect(() => readManifest(folder)).toThrow(/manifest.json.sha256 is missing/)
})

it("blobs that come, change or go between two passes are kept as a row may name them", async () => {
  const folder = newFolder()
  const storage = fakeStorage()
  await put(storage, "a", "same")
  await put(storage, "a/b", "same")
  await put(storage, "goes", "gone later")
  await put(storage, "changes", "old")
  const copy = makeBlobCopy(storage, folder, silent)
  await Effect.runPromise(copy.pass)
  await Effect.runPromise(storage.remove("goes"))
  await put(storage, "changes", "new")
  await put(storage, "comes", "late")
  await Effect.runPromise(copy.pass)
  const list = await Effect.runPromise(copy.close)
  expect([list.count, list.size]).toEqual([5, 25])
  // equal blobs are there once
  const files = () =>
    readdirSync(join(folder, "blobs"), { recursive: true, encoding: "utf8" }).filter(
      (name) => name.length > 60,
    )
  expect(files()).toHaveLength(5)
  await verifyBlobs(folder, list, silent)
  const target = fakeStorage()
  expect(await Effect.runPromise(restoreBlobs(target, folder, list, silent))).toBe(5)
  expect(
    await Promise.all(["a/b", "goes", "changes", "comes"].map((key) => textOf(target, key))),
  ).toEqual(["same", "gone later", "new", "late"])
  const [some] = files()
  writeFileSync(join(folder, "blobs", some!), "")
  await expect(verifyBlobs(folder, list, silent)).rejects.toThrow(/damaged/)
})

const first: Migrations = { "001": { up: async () => {} } }

it("says which plugin or migration a backup needs", () => {
  const of = (migrations: Record<string, string[]>) => ({
    migrations,
    extensions: [],
    tables: [],
    sequences: [],
  })
  const plugin = { name: "p", migrations: first }
  expect(whyNotThese(of({ p: ["001"] }), [plugin])).toBeUndefined()
  expect(whyNotThese(of({ p: ["001", "002"] }), [plugin])).toMatch(
    /newer rakit: the migration 002 of p/,
  )
  expect(whyNotThese(of({ q: [] }), [plugin])).toMatch(
    /the plugin q, which the config file does not name/,
  )
  expect(migrationTableOf("endpoint-retrieval")).toBe("endpoint_retrieval_migration")
})
