import { Effect } from "effect"
import { expect, test } from "vitest"
import { defineEndpoint } from "../../../core/ports/endpoint.ts"
import type { Exchange } from "../exchange.ts"
import { openHttpFixture } from "../testing/fixture.ts"
import { openSocket, until } from "../testing/raw.ts"
import { makeInFlight } from "./in-flight.ts"

const turn = () => new Promise((resolve) => setImmediate(resolve))

test("requests that arrive together are all begun before one runs, and all run before one is answered", async () => {
  const inFlight = makeInFlight()
  const seen: { readonly open: number; readonly answered: number }[] = []
  const watching = defineEndpoint({
    id: "watching",
    summary: "Notes what the other requests are at.",
    method: "GET",
    path: "/v1/watching",
    access: "public",
    body: "none",
    maxBodyBytes: 0,
    plan: () =>
      Effect.sync(() => {
        const all = inFlight.all()
        seen.push({
          open: all.length,
          answered: all.filter(({ res }) => res.writableEnded).length,
        })
        return { bound: {}, run: Effect.succeed({ status: 200, json: {} }) }
      }),
  })
  const fixture = await openHttpFixture({ inFlight, endpoints: [watching] })
  try {
    const socket = await openSocket(fixture.port)
    // in one packet, so that one turn of the event loop reads all of them
    socket.write("GET /v1/watching HTTP/1.1\r\nHost: x\r\n\r\n".repeat(8))
    await until(() => seen.length === 8)
    const alone = (n: number) => ({ open: n + 1, answered: n })
    expect(seen.slice(0, 3)).toEqual([alone(0), alone(1), alone(2)])
    expect(seen.slice(3)).toEqual(Array.from({ length: 5 }, () => ({ open: 8, answered: 3 })))
    await until(() => inFlight.size === 0)
    socket.destroy()
  } finally {
    await fixture.close()
  }
})

test("those of a turn that each end before the next begins are a cohort, too", async () => {
  const inFlight = makeInFlight()
  const went: number[] = []
  const serve = (n: number) => {
    const link = inFlight.begin({} as Exchange)
    inFlight.cohorts.go(() => {
      went.push(n)
      inFlight.end(link)
    })
  }
  for (let n = 0; n < 6; n++) serve(n)
  expect(went).toEqual([0, 1, 2])
  await turn()
  expect(went).toEqual([0, 1, 2, 3, 4, 5])
  serve(6)
  expect(went.at(-1)).toBe(6)
})
