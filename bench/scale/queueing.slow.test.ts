import { expect, it } from "vitest"
import { erlangC, randomOf, type SimulatedSystem, simulate } from "./queueing.ts"

it("Erlang C is what tables say, and 1 without room", () => {
  // M/M/1: the load itself; M/M/2 at 1: 1/3; published tables: 10 servers at 7 and at 9
  expect(erlangC(1, 0.6)).toBeCloseTo(0.6, 12)
  expect(erlangC(2, 1)).toBeCloseTo(1 / 3, 12)
  expect(erlangC(10, 7)).toBeCloseTo(0.2217, 3)
  expect(erlangC(10, 9)).toBeCloseTo(0.6687, 3)
  expect(erlangC(4, 4)).toBe(1)
  expect(erlangC(500, 450)).toBeLessThan(0.05)
})

const free: SimulatedSystem = {
  perSecond: 600,
  processes: 1,
  callMs: 1,
  databaseCores: 1,
  statementMs: 0,
  itemMs: 0,
  gathered: 128,
  flushMs: 0,
}

it("a thread alone is a queue of Jackson: the mean time is service / (1 - load)", () => {
  for (const perSecond of [100, 600, 800]) {
    const { meanMs } = simulate({ ...free, perSecond }, 100_000)
    expect(meanMs / (1 / (1 - perSecond / 1000))).toBeGreaterThan(0.95)
    expect(meanMs / (1 / (1 - perSecond / 1000))).toBeLessThan(1.05)
  }
})

it("statements of one call each are an M/D/1 queue", () => {
  // admissions only wait for each other: two lines, so a database of two cores is never short
  const system = { ...free, callMs: 0, databaseCores: 2, statementMs: 1, gathered: 1 }
  const load = 0.5
  const { meanMs, callsPerSettlement } = simulate({ ...system, perSecond: 1000 * load }, 60_000)
  // the first line waits load / (2 (1 - load)) of a service; behind it nobody waits again
  expect(meanMs).toBeCloseTo(2 + load / (2 * (1 - load)), 1)
  expect(callsPerSettlement).toBe(1)
})

it("calls share statements and flushes the more of them there are", () => {
  const system = { ...free, callMs: 0.1, databaseCores: 4, statementMs: 0.5, flushMs: 2 }
  const groups = [50, 1000, 5000].map((perSecond) => simulate({ ...system, perSecond }))
  const sizes = groups.map(({ callsPerSettlement }) => callsPerSettlement)
  expect(sizes[0]).toBeLessThan(1.2)
  expect(sizes[1]).toBeGreaterThan(2)
  expect(sizes[2]).toBeGreaterThan(10)
  // one flush and two statements are the least
  for (const { p50Ms } of groups) expect(p50Ms).toBeGreaterThan(3)
})

it("a system without room serves what it can, and more processes more", () => {
  const system = { ...free, callMs: 1, perSecond: 4000, databaseCores: 16 }
  const [one, two] = [1, 2].map((processes) => simulate({ ...system, processes }).perSecond)
  expect(one).toBeGreaterThan(900)
  expect(one).toBeLessThan(1050)
  expect(two! / one!).toBeGreaterThan(1.9)
})

it("is the same in every run, and another one by another seed", () => {
  expect(simulate(free)).toEqual(simulate(free))
  expect(simulate(free, 20_000, 2)).not.toEqual(simulate(free))
  const random = randomOf(7)
  const mean = Array.from({ length: 100_000 }, random).reduce((sum, x) => sum + x, 0) / 100_000
  expect(mean).toBeCloseTo(0.5, 2)
})

it("connections that wait for their replies are never more calls than they are (Little)", () => {
  const system = { ...free, callMs: 1, databaseCores: 4, statementMs: 0.3, flushMs: 1 }
  const some = [1, 8, 64].map((connections) => simulate({ ...system, connections }))
  for (const [n, { perSecond, meanMs }] of some.entries())
    expect(Math.abs((perSecond * meanMs) / 1000 / [1, 8, 64][n]! - 1)).toBeLessThan(0.05)
  // one call after the other takes the sum of its parts
  expect(some[0]!.meanMs).toBeCloseTo(1 + 0.6 + 1, 1)
  expect(some[2]!.perSecond).toBeLessThan(1_020)
})
