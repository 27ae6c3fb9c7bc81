import { Deferred, Effect } from "effect"
import { expect, it } from "vitest"
import { makeFetchTurns } from "./fetch-turns.ts"

/** Fetches of accounts that run until they are let go. */
const makeFetches = () => {
  const inTurn = makeFetchTurns()
  const door = Deferred.makeUnsafe<void>()
  const begun: string[] = []
  const start = (account: string) =>
    Effect.runFork(
      inTurn(
        account,
        Effect.andThen(
          Effect.sync(() => void begun.push(account)),
          Deferred.await(door),
        ),
      ),
    )
  const settle = async () => {
    for (let i = 0; i < 30; i++) await new Promise((resolve) => setImmediate(resolve))
  }
  return { begun, start, settle, open: () => Deferred.doneUnsafe(door, Effect.void) }
}

it("requests of one account fetch four at a time, and hold up no other account", async () => {
  const { begun, start, settle, open } = makeFetches()
  for (let i = 0; i < 20; i++) start("a")
  start("b")
  await settle()
  expect(begun).toEqual(["a", "a", "a", "a", "b"])
  open()
  await settle()
  expect(begun.length).toBe(21)
})

it("of all accounts sixteen fetch at once; a client that leaves gives its turn back", async () => {
  const { begun, start, settle } = makeFetches()
  const fibers = Array.from({ length: 20 }, (_, i) => start(`account ${i}`))
  await settle()
  expect(begun.length).toBe(16)
  for (const fiber of fibers.slice(0, 3)) fiber.interruptUnsafe()
  await settle()
  expect(begun.length).toBe(19)
})
