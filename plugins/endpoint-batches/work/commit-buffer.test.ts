import { Effect, Fiber } from "effect"
import { describe, expect, it } from "vitest"
import { makeTray } from "./commit-buffer.ts"

const open = (more: { readonly lingerMs?: number } = {}) =>
  makeTray<string>({
    maxItems: 3,
    maxBytes: 10,
    lingerMs: 3_600_000,
    bytesOf: (item) => item.length,
    ...more,
  })

/** Whether it is ready without waiting. */
const isReady = async (tray: ReturnType<typeof open>): Promise<boolean> => {
  const fiber = Effect.runFork(tray.ready)
  for (let turn = 0; turn < 3; turn++) await new Promise<void>((resolve) => setImmediate(resolve))
  const isDone = fiber.pollUnsafe() !== undefined
  await Effect.runPromise(Fiber.interrupt(fiber))
  return isDone
}

const fill = (tray: ReturnType<typeof open>, ...items: readonly (string | undefined)[]) => {
  for (const _ of items) tray.began()
  for (const item of items) tray.ended(item)
}

describe("the tray", () => {
  it("gathers until there are enough, in number or in bytes", async () => {
    const tray = open()
    expect(await isReady(tray)).toBe(false)
    fill(tray, "a", "b")
    expect(await isReady(tray)).toBe(false)
    fill(tray, "c", "d")
    expect(await isReady(tray)).toBe(true)
    expect(tray.take()).toEqual({ items: ["a", "b", "c"], isOver: false })
    expect(await isReady(tray)).toBe(false)
    fill(tray, "123456789")
    expect(await isReady(tray)).toBe(true)
    expect(tray.take().items).toEqual(["d", "123456789"])
    fill(tray, "a", "larger than all that fits")
    expect([tray.take().items, tray.take().items]).toEqual([["a"], ["larger than all that fits"]])
  })

  it("does not keep a lonely item for long", async () => {
    const tray = open({ lingerMs: 1 })
    fill(tray, "a")
    await Effect.runPromise(tray.ready)
    expect(tray.take().items).toEqual(["a"])
  })

  it("is over when nothing runs and nothing more begins", async () => {
    const tray = open()
    tray.began()
    tray.began()
    tray.close()
    expect(await isReady(tray)).toBe(false)
    tray.ended("a")
    tray.ended(undefined)
    expect(await isReady(tray)).toBe(true)
    expect(tray.take()).toEqual({ items: ["a"], isOver: true })
  })

  it("answers with nothing when it is nudged, and gives up all at once", async () => {
    const tray = open()
    tray.nudge()
    expect(await isReady(tray)).toBe(true)
    expect(tray.take()).toEqual({ items: [], isOver: false })
    expect(await isReady(tray)).toBe(false)
    fill(tray, "a", "b", "c", "d")
    expect(tray.rest()).toEqual(["a", "b", "c", "d"])
    expect(await isReady(tray)).toBe(false)
  })
})
