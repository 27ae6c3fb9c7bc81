import { expect, it } from "vitest"
import type { Costs, MeasuredCosts, Rung, Served } from "./costs.ts"
import { lineThrough, searchUs, statementUs } from "./figures.ts"
import { growTo, heldByProcess, remedies, scenarioOf, timesAt } from "./growth.ts"
import { deploymentToday } from "./load-profile.ts"
import {
  lockedUs,
  processesFor,
  type ResourceId,
  resourcesOf,
  saturationOf,
  saturations,
} from "./resources.ts"

const cost: Costs = {
  count: 1000,
  perSecond: 100,
  rakitCpuUs: 1000,
  postgresCpuUs: 300,
  statements: 1,
  transactions: 1,
  walBytes: 4000,
  flushes: 0.1,
  rows: {},
  bytes: { ledger_call: 2000 },
}
const served: Served = { ...cost, p50Ms: 10, p99Ms: 30, failures: 0 }
const search = (chunks: number) => ({
  ...served,
  chunks,
  rakitCpuUs: 1000 + chunks / 10,
  firstMs: 20,
})
/** PostgreSQL takes 500 µs a statement and 100 µs a call in it. */
const rung = (each: number): Rung => ({
  ...served,
  processes: 1,
  connections: each,
  accounts: "many",
  callsPerAdmission: each,
  callsPerSettlement: each,
  postgresCpuUs: 1000 / each + 100,
  admitMs: 1,
  settleMs: 1,
  databaseConnections: 4,
  clientCores: 0.1,
  foreignCores: 0,
})
const measured = { rounds: 1, ms: 1, loadBefore: [], loadAfter: [] }
const costs: MeasuredCosts = {
  date: "2026-01-01",
  machine: {
    cpu: "",
    cores: 2,
    memoryGb: 8,
    kernel: "",
    node: "",
    postgres: "",
  },
  conditions: { ladder: measured, kinds: measured },
  ladder: [1, 8, 32].map(rung),
  flushMs: 2,
  idle: {
    rakitCpuUs: 10,
    postgresCpuUs: 1000,
    statements: 1,
    transactions: 1,
    connections: 2,
    residentMb: 150,
  },
  kinds: {
    chat: served,
    chatStream: served,
    embedding: served,
    file: served,
    batchLine: cost,
    webhook: cost,
    chunk: { ...cost, bytes: { retrieval_vector: 1000 } },
  },
  fileBytes: 65_536,
  streamTokens: 50,
  search: [1000, 10_000, 50_000].map(search),
}
const part = (id: ResourceId, deployment = deploymentToday) =>
  resourcesOf(scenarioOf(costs, deployment)).find((one) => one.id === id)!

it("reads what a statement, a call in it and a chunk in a search cost from the measurements", () => {
  expect(
    lineThrough([
      [0, 1],
      [1, 3],
      [2, 5],
    ]),
  ).toEqual([1, 2])
  expect(lineThrough([[4, 7]])).toEqual([7, 0])
  expect(statementUs(costs).statement).toBeCloseTo(500, 6)
  expect(statementUs(costs).call).toBeCloseTo(100, 6)
  expect(searchUs(costs, "rakitCpuUs", 20_000)).toBeCloseTo(3000, 6)
})

it("multiplies as one would by hand", () => {
  // 35 calls and 0.5 of the rest at 1 ms, 2 searches of 10,000 chunks at 2 ms
  expect(part("rakit-cpu").use(10)).toBeCloseTo(10 * (35.5 + 2 * 2) * 1e-3, 9)
  expect(saturationOf(part("rakit-cpu"))).toBeCloseTo((3 * 0.6) / 0.0395, 1)
  // (2 x 500 + 128 x 100 + 2000 µs) / 128 a call, of which the busiest account makes 3.7 a second
  expect(lockedUs(costs)).toBeCloseTo(123.44, 2)
  expect(saturationOf(part("balance-row"))).toBeCloseTo(1e6 / 123.44 / 3.7, -1)
  // where calls of one account were measured, a call costs what it cost there: 250 µs - 2 x 500 / 8
  const alone = { ...rung(8), accounts: "one" as const, postgresCpuUs: 250 }
  expect(lockedUs({ ...costs, ladder: [...costs.ladder, alone] })).toBeCloseTo(148.44, 2)
  // 3 processes x 20 of 97
  expect([part("connections").use(1), part("connections").capacity(1)]).toEqual([60, 97])
  expect(part("webhooks").use(1000)).toBeCloseTo(30, 9)
  expect(part("vacuum").capacity(1)).toBeCloseTo(40.96, 6)
  expect(part("wal").use(1)).toBeCloseTo((37.5 * 4000) / 1e6, 6)
})

it("finds where a part is full, and says so when it is from the start or never", () => {
  const line = { ...part("wal"), use: (factor: number) => factor, capacity: () => 50 }
  expect(saturationOf(line)).toBeCloseTo(50, 1)
  expect(saturationOf({ ...line, capacity: () => 0.5 })).toBe(1)
  expect(saturationOf({ ...line, use: () => 1 })).toBe(Number.POSITIVE_INFINITY)
})

it("each remedy makes room in the part that it is for", () => {
  for (const [id, list] of Object.entries(remedies)) {
    // without the bound of three processes, which others lift
    let deployment = id === "rakit-cpu" ? deploymentToday : { ...deploymentToday, processes: 40 }
    for (const { name, change } of list) {
      const next = { ...deployment, ...change(deployment, costs) }
      const [before, after] = [deployment, next].map((one) => {
        const { use, capacity } = part(id as ResourceId, one)
        return use(5000) / capacity(5000)
      })
      expect(after, `${id}: ${name}`).toBeLessThan(before!)
      deployment = next
    }
  }
})

it("grows until nothing is full, one change at a time, and needs more processes for it", () => {
  const steps = growTo(scenarioOf(costs), 1000)
  expect(steps[0]?.remedy).toBeUndefined()
  expect(steps.at(-1)!.parts[0]!.factor).toBeGreaterThan(1000)
  expect(steps.slice(0, -1).every(({ parts }) => parts[0]!.factor <= 1000)).toBe(true)
  for (const { parts } of steps)
    expect(parts.map(({ factor }) => factor)).toEqual(
      parts.map(({ factor }) => factor).toSorted((a, b) => a - b),
    )
  const { scenario } = steps.at(-1)!
  expect(processesFor(scenario, 1000)).toBe(Math.ceil(39.5 / 0.6))
  expect(heldByProcess(costs)).toBe(4)
  expect(saturations(scenario).length).toBe(11)
})

it("times rise with the load, and there are none where a part is full", () => {
  const times = [1, 25, 40].map((factor) => timesAt(scenarioOf(costs), factor)!)
  expect(times[0]!.p50Ms).toBeGreaterThan(3)
  expect(times[1]!.p99Ms).toBeGreaterThan(times[0]!.p99Ms)
  expect(times[2]!.p99Ms).toBeGreaterThan(times[1]!.p99Ms)
  expect(timesAt(scenarioOf(costs), 80)).toBeUndefined()
})
