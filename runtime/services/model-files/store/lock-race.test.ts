import { join } from "node:path"
import { setTimeout as sleep } from "node:timers/promises"
import { expect, it, vi } from "vitest"
import { setUp } from "../testing/fixture.ts"
import { acquireLock } from "./lock.ts"

/**
 * Every other removal of a draft is slow: then a lock exists for a while before its holder knows
 * that it has it.
 */
vi.mock("node:fs/promises", async (original) => {
  const fs = await original<typeof import("node:fs/promises")>()
  let drafts = 0
  const rm: typeof fs.rm = async (path, options) => {
    if (/\.lock\.[0-9a-f-]{36}$/.test(String(path)) && drafts++ % 2 === 0) await sleep(20)
    return fs.rm(path, options)
  }
  return { ...fs, rm }
})

const { dir, context } = setUp()

it("a lock that was just made is not stale to other waiters of the same process", async () => {
  let inside = 0
  let most = 0
  const signal = new AbortController().signal
  const useLock = async () => {
    const path = join(dir(), "x.lock")
    const lock = await acquireLock({ context: context(), path, signal, onWait: () => {} })
    inside += 1
    most = Math.max(most, inside)
    await sleep(3)
    inside -= 1
    await lock.release()
  }
  await Promise.all(Array.from({ length: 12 }, useLock))
  expect(most).toBe(1)
})
