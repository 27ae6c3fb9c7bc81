import { spawnSync } from "node:child_process"
import { mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterEach, beforeEach, expect, test } from "vitest"
import { startOf } from "./process-list.ts"
import { lockOwner, takeLock } from "./server-lock.ts"

let folder: string
let path: string
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "rakit-lock-"))
  path = join(folder, "server.lock")
})
afterEach(() => rmSync(folder, { recursive: true }))

test("free, held, free", () => {
  expect(lockOwner(path)).toBeUndefined()
  const giveBack = takeLock(path)
  expect(lockOwner(path)).toBe(process.pid)
  expect(() => takeLock(path)).toThrow(`process ${process.pid}`)
  giveBack()
  expect(lockOwner(path)).toBeUndefined()
  expect(readdirSync(folder)).toEqual([])
  takeLock(path)()
})

test("the lock of a living process stands", () => {
  writeFileSync(path, `${process.ppid} ${startOf(process.ppid)}`)
  expect(() => takeLock(path)).toThrow(`process ${process.ppid}`)
})

const dead = spawnSync(process.execPath, ["-e", ""]).pid

test.each([
  ["a dead process", `${dead} 1`],
  ["nonsense", "hello"],
  ["nothing", ""],
  ["an earlier process with our number, as in a restarted container", `${process.pid} 1`],
])("a lock with %s counts for nothing", (_, content) => {
  writeFileSync(path, content)
  expect(lockOwner(path)).toBeUndefined()
  const giveBack = takeLock(path)
  expect(lockOwner(path)).toBe(process.pid)
  giveBack()
  expect(readdirSync(folder)).toEqual([])
})

test.skipIf(process.platform !== "linux")(
  "a later process with the number of the holder does not hold it",
  () => {
    writeFileSync(path, `${process.ppid} 1`)
    expect(lockOwner(path)).toBeUndefined()
  },
)
