import { afterEach, beforeEach, expect, test, vi } from "vitest"
import { idleMs, releaseWhenIdle } from "./idle-release.ts"

beforeEach(() => void vi.useFakeTimers())
afterEach(() => void vi.useRealTimers())

test("memory is released twice after the last job, and not while one runs", () => {
  const release = vi.fn()
  const held = releaseWhenIdle(release)
  held(0)
  vi.advanceTimersByTime(idleMs - 1)
  held(300)
  vi.advanceTimersByTime(10 * idleMs)
  expect(release).toHaveBeenCalledTimes(0)
  held(0)
  vi.advanceTimersByTime(idleMs - 1)
  expect(release).toHaveBeenCalledTimes(0)
  vi.advanceTimersByTime(1)
  expect(release).toHaveBeenCalledTimes(1)
  vi.advanceTimersByTime(idleMs - 1)
  expect(release).toHaveBeenCalledTimes(1)
  vi.advanceTimersByTime(1)
  expect(release).toHaveBeenCalledTimes(2)
  vi.advanceTimersByTime(10 * idleMs)
  expect(release).toHaveBeenCalledTimes(2)
})

test("a job between the two puts both off", () => {
  const release = vi.fn()
  const held = releaseWhenIdle(release)
  held(0)
  vi.advanceTimersByTime(idleMs)
  held(1)
  vi.advanceTimersByTime(10 * idleMs)
  expect(release).toHaveBeenCalledTimes(1)
  held(0)
  vi.advanceTimersByTime(2 * idleMs)
  expect(release).toHaveBeenCalledTimes(3)
})
