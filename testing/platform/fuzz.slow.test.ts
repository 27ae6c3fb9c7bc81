import { afterAll, beforeAll, expect, it } from "vitest"
import { runCli } from "../platform.ts"
import { askForForeign, askWithForeignBodies, makeObjects, stillThere } from "./fuzz/foreign.ts"
import { errorLines, findingsText } from "./fuzz/report.ts"
import { runFuzz } from "./fuzz/run.ts"
import { openWorld, type World } from "./fuzz/world.ts"

let world: World
beforeAll(async () => {
  world = await openWorld()
})
afterAll(() => world?.close())

/** Always the same here, so that a change is judged by what it changes; `npm run fuzz` takes any. */
const seed = Number(process.env.RAKIT_TEST_FUZZ_SEED ?? 2026)

it("ids of another account, or of the other mode, are 404 for every operation", async () => {
  await makeObjects(world)
  const replies = await askForForeign(world)
  expect(replies.length).toBeGreaterThan(200)
  expect(replies.filter(({ status }) => status !== 404)).toEqual([])
  const inBodies = await askWithForeignBodies(world)
  expect(inBodies.length).toBeGreaterThan(20)
  expect(inBodies.filter(({ status }) => status !== 404)).toEqual([])
  expect((await stillThere(world)).filter(({ status }) => status !== 200)).toEqual([])
}, 180_000)

it(`any requests: every reply is as the document says (seed ${seed})`, async () => {
  const report = await runFuzz(world, { operations: 1_500, seed, atOnce: 4 })
  expect(findingsText(report, world)).toBe("")
  const counts = [...report.statuses.values()].flatMap((statuses) => [...statuses])
  const good = counts.reduce((sum, [status, n]) => sum + (status < 300 ? n : 0), 0)
  // requests that are all refused at the door would prove nothing
  expect(good).toBeGreaterThan(400)
  const reached = new Set(report.statuses.keys())
  expect(world.document.operations.filter(({ id }) => !reached.has(id))).toEqual([])
  expect(errorLines(world)).toEqual([])
  const { stdout } = await runCli(["ledger", "verify", "-c", world.config], world.platform.env)
  expect(stdout).toContain("The ledger is sound.")
}, 300_000)
