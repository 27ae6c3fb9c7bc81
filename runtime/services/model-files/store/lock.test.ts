import { spawnSync } from "node:child_process"
import { existsSync } from "node:fs"
import { readdir, readFile, utimes, writeFile } from "node:fs/promises"
import { hostname } from "node:os"
import { join } from "node:path"
import { setTimeout as sleep } from "node:timers/promises"
import { describe, expect, it } from "vitest"
import { setUp } from "../testing/fixture.ts"
import { acquireLock, type LockHolder, pidSpace } from "./lock.ts"

const { dir, context } = setUp()
const path = () => join(dir(), "x.lock")

const take = (
  more: {
    signal?: AbortSignal
    onWait?: (holder: LockHolder | undefined) => void
    nowMs?: () => number
  } = {},
) =>
  acquireLock({
    context: context(more.nowMs && { clock: { nowMs: more.nowMs } }),
    path: path(),
    signal: more.signal ?? new AbortController().signal,
    onWait: more.onWait ?? (() => {}),
  })

const leave = (holder: Partial<LockHolder>) =>
  writeFile(
    path(),
    JSON.stringify({
      ...{ pid: process.ppid, host: hostname(), pids: pidSpace(), token: "t" },
      ...holder,
    }),
  )
const deadPid = () => spawnSync(process.execPath, ["-e", ""]).pid ?? 0

describe("acquireLock", () => {
  it("lets one in at a time", async () => {
    let inside = 0
    let most = 0
    const rounds = Array.from({ length: 12 }, async () => {
      const lock = await take()
      inside += 1
      most = Math.max(most, inside)
      await sleep(3)
      inside -= 1
      await lock.release()
    })
    await Promise.all(rounds)
    expect(most).toBe(1)
    expect(await readdir(dir())).toEqual([])
  })

  it("takes over from a dead process at once, whoever comes first", async () => {
    await leave({ pid: deadPid() })
    let inside = 0
    let most = 0
    await Promise.all(
      Array.from({ length: 6 }, async () => {
        const lock = await take()
        inside += 1
        most = Math.max(most, inside)
        await sleep(3)
        inside -= 1
        await lock.release()
      }),
    )
    expect(most).toBe(1)
  })

  it("knows that its own pid can be somebody else's from before", async () => {
    await leave({ pid: process.pid, token: "from an earlier container" })
    const lock = await take()
    await lock.release()
    expect(existsSync(path())).toBe(false)
  })

  it("waits for a process of another container that has its host name and a pid of ours", async () => {
    await leave({ pid: process.pid, pids: "pid:[1]" })
    let now = 0
    let looks = 0
    const onWait = () => {
      looks += 1
      now += 500
    }
    const lock = await take({ nowMs: () => now, onWait })
    expect(looks).toBeGreaterThanOrEqual(4)
    await lock.release()
  })

  it("waits for a living process, and takes over once it shows no life for long", async () => {
    await leave({ pid: process.ppid })
    let now = 0
    const holders: (LockHolder | undefined)[] = []
    const lock = await take({
      nowMs: () => now,
      onWait: (holder) => {
        holders.push(holder)
        now += 500
      },
    })
    expect(holders.length).toBeGreaterThanOrEqual(4)
    expect(holders[0]?.pid).toBe(process.ppid)
    await lock.release()
  })

  it("waits on while a holder on another machine touches its lock", async () => {
    await leave({ host: "elsewhere", pid: 1 })
    let now = 0
    let looks = 0
    const controller = new AbortController()
    const waiting = take({
      nowMs: () => now,
      signal: controller.signal,
      onWait: async () => {
        looks += 1
        now += 1_500
        await utimes(path(), looks, looks)
        if (looks === 8) controller.abort()
      },
    })
    await expect(waiting).rejects.toThrow(/abort/i)
    expect(looks).toBe(8)
  })

  it("tells a holder that was taken over, which then leaves the new lock alone", async () => {
    const lock = await take()
    await leave({ token: "the new holder" })
    await new Promise((resolve) => lock.lost.addEventListener("abort", resolve))
    await lock.release()
    expect(await readFile(path(), "utf8")).toContain("the new holder")
  })
})
