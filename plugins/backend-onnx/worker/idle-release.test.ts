import { afterEach, beforeEach, expect, test, vi } from "vitest"
import { idleMs, pauseMs, releaseWhenIdle } from "./idle-release.ts"

beforeEach(() => void vi.useFakeTimers())
afterEach(() => void vi.useRealTimers())

const fixture = () => {
  const [trim, release] = [vi.fn(), vi.fn()]
  const held = releaseWhenIdle(trim, release)
  const called = () => [trim.mock.calls.length, release.mock.calls.length]
  return { held, called }
}

test("after the last job memory is trimmed soon, and released twice; never while one runs", () => {
  const { held, called } = fixture()
  held(0)
  vi.advanceTimersByTime(pauseMs - 1)
  held(300)
  vi.advanceTimersByTime(10 * idleMs)
  expect(called()).toEqual([0, 0])
  held(0)
  vi.advanceTimersByTime(pauseMs - 1)
  expect(called()).toEqual([0, 0])
  vi.advanceTimersByTime(1)
  expect(called()).toEqual([1, 0])
  vi.advanceTimersByTime(idleMs - pauseMs - 1)
  expect(called()).toEqual([1, 0])
  vi.advanceTimersByTime(1)
  expect(called()).toEqual([1, 1])
  vi.advanceTimersByTime(idleMs - 1)
  expect(called()).toEqual([1, 1])
  vi.advanceTimersByTime(1)
  expect(called()).toEqual([1, 2])
  vi.advanceTimersByTime(10 * idleMs)
  expect(called()).toEqual([1, 2])
})

test("a job in between puts off what is left", () => {
  const { held, called } = fixture()
  held(0)
  vi.advanceTimersByTime(pauseMs)
  held(1)
  vi.advanceTimersByTime(10 * idleMs)
  expect(called()).toEqual([1, 0])
  held(0)
  vi.advanceTimersByTime(idleMs)
  held(1)
  vi.advanceTimersByTime(10 * idleMs)
  expect(called()).toEqual([2, 1])
  held(0)
  vi.advanceTimersByTime(2 * idleMs)
  expect(called()).toEqual([3, 3])
})
