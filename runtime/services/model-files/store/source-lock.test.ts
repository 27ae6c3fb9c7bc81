import { spawnSync } from "node:child_process"
import { readFileSync, writeFileSync } from "node:fs"
import { chmod, mkdir, mkdtemp, readdir, rm } from "node:fs/promises"
import { hostname, tmpdir } from "node:os"
import { join } from "node:path"
import { Worker } from "node:worker_threads"
import { afterEach, beforeEach, expect, it } from "vitest"
import { parse } from "yaml"
import type { ModelId } from "../../../../core/services/ids.ts"
import { fastTiming } from "../testing/timing.ts"
import { pidSpace } from "./lock.ts"
import { openSourceLock } from "./source-lock.ts"

let dir = ""
beforeEach(async () => {
  dir = await mkdtemp(join(tmpdir(), "source-lock-"))
})
afterEach(() => rm(dir, { recursive: true, force: true }))

const file = () => join(dir, "models.lock.yaml")
const models = () => parse(readFileSync(file(), "utf8")).models
const source = (name: string, digit = "a") => ({
  url: `hf:o/r@main/${name}`,
  sha256: digit.repeat(64),
})
const [one, two] = ["one" as ModelId, "two" as ModelId]

it("adds what nobody has added, and replaces it on request only", async () => {
  const [first, second] = [openSourceLock(file()), openSourceLock(file())]
  expect(await first.add(one, source("x"))).toEqual(source("x"))
  expect(await second.add(two, source("x", "b"))).toEqual(source("x"))
  expect(second.find(source("x").url)).toEqual(source("x"))
  expect(models()).toEqual({ one: [source("x")] })
  await second.keep(two, source("x", "b"))
  expect(models()).toEqual({ one: [source("x", "b")], two: [source("x", "b")] })
})

it("has the same text in whatever order pulls end", async () => {
  const pulls = [
    [one, "x"],
    [two, "y"],
    [one, "a"],
  ] as const
  const texts = new Set<string>()
  for (const order of [pulls, [...pulls].reverse()]) {
    const lock = openSourceLock(file())
    for (const [model, name] of order) await lock.add(model, source(name))
    texts.add(readFileSync(file(), "utf8"))
    await rm(file())
  }
  expect(texts.size).toBe(1)
  expect([...texts][0]).toMatch(/\n {2}one:\n.*@main\/a\n.*\n.*@main\/x\n.*\n {2}two:\n/)
})

it("waits while another process changes the file, and loses nothing of it", async () => {
  const lock = openSourceLock(file(), fastTiming)
  writeFileSync(`${file()}.lock`, "")
  const text = JSON.stringify({ models: { one: [source("x")] } })
  // a process that has read the file, and writes it a moment later
  const other = new Worker(
    `const fs = require("node:fs"); const { file, text } = require("node:worker_threads").workerData
    setTimeout(() => { fs.writeFileSync(file, text); fs.rmSync(file + ".lock") }, 100)`,
    { eval: true, workerData: { file: file(), text } },
  )
  await lock.keep(two, source("y"))
  expect(models()).toEqual({ one: [source("x")], two: [source("y")] })
  await other.terminate()
})

it("does not wait for a process that died, and leaves nothing beside the file", async () => {
  const { pid = 0 } = spawnSync(process.execPath, ["-e", ""])
  const holder = { pid, host: hostname(), pids: pidSpace(), token: "t" }
  writeFileSync(`${file()}.lock`, JSON.stringify(holder))
  await openSourceLock(file()).add(one, source("x"))
  expect(await readdir(dir)).toEqual(["models.lock.yaml"])
})

const pin = (url: string, digit: string) => `{ url: "${url}", sha256: ${digit.repeat(64)} }`

it.each([
  ["", "Expected object"],
  ["models: { one: [{ url: x, sha256: short }] }", /^expected 64 hexadecimal .*\["sha256"\]$/],
  [`models:\n<<<<<<< HEAD\n  one: []\n=======\n`, "line 2 is a conflict that git left"],
  ["models: { one: [], one: [] }", /^Map keys must be unique at line 1, column \d+$/],
  [
    `models: { one: [${pin("x", "a")}], two: [${pin("x", "b")}] }`,
    "two entries pin x, each to something else",
  ],
])("says of the file %j what is wrong with it", (text, reason) => {
  writeFileSync(file(), text)
  let said = ""
  try {
    openSourceLock(file())
  } catch (error) {
    said = String(error)
  }
  const [, why] =
    /models\.lock\.yaml: this is no lock file \((.*)\)\. Fix: correct it/.exec(said) ?? []
  expect(why).toEqual(typeof reason === "string" ? reason : expect.stringMatching(reason))
})

it("takes an entry that stands twice, and names a file that can't be read", async () => {
  writeFileSync(file(), `models: { one: [${pin("x", "a")}], two: [${pin("x", "a")}] }`)
  expect(openSourceLock(file()).find("x")?.sha256).toBe("a".repeat(64))
  await rm(file())
  await mkdir(file())
  expect(() => openSourceLock(file())).toThrow(
    /models\.lock\.yaml: the lock file can't be read \(EISDIR/,
  )
})

it("replaces no file that is read-only, whatever its folder allows", async () => {
  const lock = openSourceLock(file())
  await lock.add(one, source("x"))
  await chmod(file(), 0o444)
  expect(await lock.add(one, source("x", "b"))).toEqual(source("x"))
  for (const write of [lock.add, lock.keep])
    await expect(write(one, source("y"))).rejects.toThrow(/models\.lock\.yaml is read-only$/)
  expect(models()).toEqual({ one: [source("x")] })
  expect(await readdir(dir)).toEqual(["models.lock.yaml"])
})
