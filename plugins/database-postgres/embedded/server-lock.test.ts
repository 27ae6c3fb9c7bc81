import { spawn, spawnSync } from "node:child_process"
import { once } from "node:events"
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { Effect } from "effect"
import { afterEach, beforeEach, expect, test, vi } from "vitest"
import { fakeLog } from "../../../testing/fakes/log.ts"
import { bootId, isZombie, startOf } from "./process-list.ts"
import { lockOwner, takeLock, untilFree } from "./server-lock.ts"

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

test.each([
  ["of this version", `${process.ppid} ${startOf(process.ppid)} ${bootId()}`],
  ["of an earlier version", `${process.ppid} ${startOf(process.ppid)}`],
])("the lock of a living process stands: %s", (_, content) => {
  writeFileSync(path, content)
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
    writeFileSync(path, `${process.ppid} ${startOf(process.ppid)} another-boot`)
    expect(lockOwner(path)).toBeUndefined()
  },
)

/** Its child ends, and nobody asks how. */
const startWithZombie = async () => {
  const parent = spawn("sh", ["-c", "sleep 60 & echo $!; exec sleep 60"])
  const [text] = (await once(parent.stdout, "data")) as [Buffer]
  const pid = Number(text.toString())
  // the shell would ask; what it becomes does not
  await vi.waitUntil(() => readFileSync(`/proc/${parent.pid}/comm`, "utf8").trim() === "sleep")
  process.kill(pid, "SIGKILL")
  await vi.waitUntil(() => isZombie(pid))
  return { parent, pid }
}

test.skipIf(process.platform !== "linux")("a zombie holds nothing", async () => {
  const { parent, pid } = await startWithZombie()
  writeFileSync(path, `${pid} ${startOf(pid)} ${bootId()}`)
  expect(lockOwner(path)).toBeUndefined()
  takeLock(path)()
  parent.kill("SIGKILL")
})

test("a start waits for a holder that ends, and says so once", async () => {
  const holder = spawn("sleep", ["60"])
  writeFileSync(path, `${holder.pid} ${startOf(holder.pid ?? 0)} ${bootId()}`)
  const log = fakeLog()
  const free = Effect.runPromise(untilFree(path, log))
  await vi.waitUntil(() => log.lines.length > 0)
  expect(log.lines).toMatchObject([
    { event: "database.folder_in_use", fields: { pid: holder.pid } },
  ])
  holder.kill("SIGKILL")
  await free
  takeLock(path)()
})
