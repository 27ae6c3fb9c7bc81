import { afterAll, beforeAll, expect, it } from "vitest"
import { askForForeign, askWithForeignBodies, makeObjects, stillThere } from "./fuzz/foreign.ts"
import { openWorld, type World } from "./fuzz/world.ts"

let world: World
beforeAll(async () => {
  world = await openWorld()
})
afterAll(() => world?.close())

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
