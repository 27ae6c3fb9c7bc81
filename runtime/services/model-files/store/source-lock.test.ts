import { readFileSync, writeFileSync } from "node:fs"
import { chmod, mkdtemp, readdir, rm, utimes } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { Worker } from "node:worker_threads"
import { afterEach, beforeEach, expect, it } from "vitest"
import { parse } from "yaml"
import type { ModelId } from "../../../../core/services/ids.ts"
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

it("adds what nobody has added, and replaces it on request only", () => {
  const [first, second] = [openSourceLock(file()), openSourceLock(file())]
  expect(first.add(one, source("x"))).toEqual(source("x"))
  expect(second.add(two, source("x", "b"))).toEqual(source("x"))
  expect(second.find(source("x").url)).toEqual(source("x"))
  expect(models()).toEqual({ one: [source("x")] })
  second.keep(two, source("x", "b"))
  expect(models()).toEqual({ one: [source("x", "b")], two: [source("x", "b")] })
})

it("waits while another process changes the file, and loses nothing of it", async () => {
  const lock = openSourceLock(file())
  writeFileSync(`${file()}.lock`, "")
  const text = JSON.stringify({ models: { one: [source("x")] } })
  // a process that has read the file, and writes it a moment later
  const other = new Worker(
    `const fs = require("node:fs"); const { file, text } = require("node:worker_threads").workerData
    setTimeout(() => { fs.writeFileSync(file, text); fs.rmSync(file + ".lock") }, 100)`,
    { eval: true, workerData: { file: file(), text } },
  )
  lock.keep(two, source("y"))
  expect(models()).toEqual({ one: [source("x")], two: [source("y")] })
  await other.terminate()
})

it("does not wait for a process that died, and leaves nothing beside the file", async () => {
  writeFileSync(`${file()}.lock`, "")
  const long = new Date(Date.now() - 60_000)
  await utimes(`${file()}.lock`, long, long)
  openSourceLock(file()).add(one, source("x"))
  expect(await readdir(dir)).toEqual(["models.lock.yaml"])
})

it("replaces no file that is read-only, whatever its folder allows", async () => {
  const lock = openSourceLock(file())
  lock.add(one, source("x"))
  await chmod(file(), 0o444)
  expect(lock.add(one, source("x", "b"))).toEqual(source("x"))
  for (const write of [lock.add, lock.keep])
    expect(() => write(one, source("y"))).toThrow(/models\.lock\.yaml is read-only$/)
  expect(models()).toEqual({ one: [source("x")] })
  expect(await readdir(dir)).toEqual(["models.lock.yaml"])
})
