import { Effect, Fiber } from "effect"
import { describe, expect, it } from "vitest"
import { makeCommitBuffer } from "./commit-buffer.ts"

const open = (more: { readonly lingerMs?: number } = {}) =>
  makeCommitBuffer<string>({
    maxItems: 3,
    maxBytes: 10,
    lingerMs: 3_600_000,
    bytesOf: (item) => item.length,
    ...more,
  })

/** Whether the buffer is ready at once. */
const isReady = async (buffer: ReturnType<typeof open>): Promise<boolean> => {
  const fiber = Effect.runFork(buffer.ready)
  for (let turn = 0; turn < 3; turn++) await new Promise<void>((resolve) => setImmediate(resolve))
  const isDone = fiber.pollUnsafe() !== undefined
  await Effect.runPromise(Fiber.interrupt(fiber))
  return isDone
}

const fill = (buffer: ReturnType<typeof open>, ...items: readonly string[]) => {
  for (const _ of items) buffer.expect()
  for (const item of items) buffer.put(item)
}

describe("the buffer", () => {
  it("waits until there are enough, in number or in bytes", async () => {
    const buffer = open()
    expect(await isReady(buffer)).toBe(false)
    fill(buffer, "a", "b")
    expect(await isReady(buffer)).toBe(false)
    fill(buffer, "c", "d")
    expect(await isReady(buffer)).toBe(true)
    expect(buffer.take()).toEqual({ items: ["a", "b", "c"], isOver: false })
    expect(await isReady(buffer)).toBe(false)
    fill(buffer, "123456789")
    expect(await isReady(buffer)).toBe(true)
    expect(buffer.take().items).toEqual(["d", "123456789"])
    fill(buffer, "a", "larger than all that fits")
    expect([buffer.take().items, buffer.take().items]).toEqual([
      ["a"],
      ["larger than all that fits"],
    ])
  })

  it("does not keep a lonely item for long", async () => {
    const buffer = open({ lingerMs: 1 })
    fill(buffer, "a")
    await Effect.runPromise(buffer.ready)
    expect(buffer.take().items).toEqual(["a"])
  })

  it("is over when nothing runs and nothing more begins", async () => {
    const buffer = open()
    buffer.expect()
    buffer.expect()
    buffer.close()
    expect(await isReady(buffer)).toBe(false)
    buffer.put("a")
    buffer.abandon()
    expect(await isReady(buffer)).toBe(true)
    expect(buffer.take()).toEqual({ items: ["a"], isOver: true })
  })

  it("answers with nothing when it is flushed, and gives up all at once", async () => {
    const buffer = open()
    buffer.flush()
    expect(await isReady(buffer)).toBe(true)
    expect(buffer.take()).toEqual({ items: [], isOver: false })
    expect(await isReady(buffer)).toBe(false)
    fill(buffer, "a", "b", "c", "d")
    expect(buffer.drain()).toEqual(["a", "b", "c", "d"])
    expect(await isReady(buffer)).toBe(false)
  })
})
