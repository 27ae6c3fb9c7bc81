import { mkdtempSync, readdirSync, rmSync, statSync, utimesSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterEach, beforeEach, expect, test } from "vitest"
import { contentOf } from "./content-digest.ts"
import { KnownContents } from "./known-contents.ts"

let root: string
let path: string
beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), "rakit-known-"))
  path = join(root, "weights.bin")
  writeFileSync(path, "one")
})
afterEach(() => rmSync(root, { recursive: true, force: true }))

// a file's change lies in the past at once
const at = { leastBytes: 1, tickMs: -1_000 }
const known = (options = at) => new KnownContents(join(root, "known"), options)
const reads = (contents: KnownContents): { readonly sha256: string; readonly times: number } => {
  let times = 0
  return { sha256: contents.of(path, () => times++).sha256, times }
}

test("a file is read once, also by the next process", () => {
  const { sha256 } = contentOf(path)
  expect(reads(known())).toEqual({ sha256, times: 1 })
  expect(reads(known())).toEqual({ sha256, times: 0 })
})

test("a changed file is read again, though its size and time are the same", () => {
  reads(known())
  const { atime, mtime, size } = statSync(path)
  writeFileSync(path, "two")
  utimesSync(path, atime, mtime)
  expect(statSync(path)).toMatchObject({ size, mtime })
  expect(reads(known())).toEqual({ sha256: contentOf(path).sha256, times: 1 })
})

test("small files are always read, and those that were written just now", () => {
  for (const options of [
    { leastBytes: 4, tickMs: -1_000 },
    { leastBytes: 1, tickMs: 1e6 },
  ]) {
    reads(known(options))
    expect(reads(known(options)).times).toBe(1)
  }
})

test("a damaged record is no record, and there are not more than a thousand", () => {
  reads(known())
  const folder = join(root, "known")
  for (const name of readdirSync(folder)) writeFileSync(join(folder, name), "{")
  expect(reads(known()).times).toBe(1)
  for (let i = 0; i < 1_000; i++) writeFileSync(join(folder, String(i)), "")
  writeFileSync(path, "more")
  reads(known())
  expect(readdirSync(folder)).toHaveLength(1)
})

test("where nothing can be written, the file is read", () => {
  writeFileSync(join(root, "known"), "a file")
  expect(reads(known()).times).toBe(1)
})
