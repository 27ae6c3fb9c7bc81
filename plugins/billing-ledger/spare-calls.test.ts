import { Effect } from "effect"
import { afterEach, beforeEach, expect, it, vi } from "vitest"
import type { Limits } from "../../core/index.ts"
import { settlementOf } from "./testing/plain-ledger.ts"
import { type Fixture, openFixture } from "./testing/spare-calls-fixture.ts"

beforeEach(() => {
  vi.useFakeTimers()
})
afterEach(() => {
  vi.useRealTimers()
})

/** Calls enough to make the key busy, which find nothing yet. */
const makeBusy = ({ spares, call }: Fixture, holdMicros = 0n, limits: Partial<Limits> = {}) => {
  for (let i = 0; i < 4; i++) expect(spares.take(call(holdMicros, limits))).toBeUndefined()
}

it("asks for none while a key is not busy, nor where there may be none", () => {
  const idle = openFixture()
  for (let i = 0; i < 20; i++) {
    idle.spares.take(idle.call())
    idle.pass(50)
  }
  expect(idle.asked).toEqual([])
  const none = openFixture(0)
  makeBusy(none)
  expect(none.asked).toEqual([])
})

it("asks for as many calls of a busy key as a window has, and answers with them, the oldest first", () => {
  const fixture = openFixture()
  const { spares, call, asked, answer, admitted } = fixture
  makeBusy(fixture, 3n)
  expect(asked).toHaveLength(4)
  expect(asked[0]).toMatchObject({ counts: "spare", holdMicros: 4n, caller: call().caller })
  answer(admitted(20))
  const calls = [call(3n), call(4n), call(2n)]
  const remaining = calls.map((one) => spares.take(one))
  expect(remaining).toEqual(
    [23, 22, 21].map((left) => ({ limit: 60, remaining: left, resetMs: 60_250, holdMs: 0 })),
  )
  expect(calls.map(({ id }) => spares.spent(settlementOf(id)).spare?.id)).toEqual(
    asked.slice(0, 3).map(({ id }) => id),
  )
})

it("asks again when half is used, as many as are missing at the pace of now", () => {
  const fixture = openFixture(8)
  const { spares, call, asked, answer, admitted } = fixture
  makeBusy(fixture)
  answer(admitted())
  for (const [used, all] of [
    [1, 4],
    [2, 8],
    [3, 8],
  ]) {
    spares.take(call())
    expect({ used, all: asked.length }).toEqual({ used, all })
  }
})

it("keeps what was asked for by its request until the settlement has arrived", () => {
  const fixture = openFixture()
  const { spares, call, asked, answer, admitted } = fixture
  makeBusy(fixture, 5n)
  answer(admitted())
  const used = { ...call(5n), requestId: "mine", model: "m" }
  spares.take(used)
  const item = settlementOf(used.id, "settled", 2n)
  expect(spares.spent(item)).toEqual({
    ...item,
    account: "a",
    spare: {
      id: asked[0]?.id,
      heldMicros: "8",
      request: expect.objectContaining({
        ...{ id: used.id, hold_micros: "5", request_id: "mine", model: "m", counts: "all" },
      }),
    },
  })
  expect(JSON.parse(JSON.stringify(spares.spent(item).spare))).toEqual(spares.spent(item).spare)
  spares.forget(used.id)
  expect(spares.spent(item)).toEqual(item)
})

it.each([
  ["a larger hold", 5n, {}],
  ["a much smaller hold", 0n, {}],
  ["other limits", 4n, { rpm: 59 }],
])("does not answer a request with %s", (_, holdMicros, limits) => {
  const fixture = openFixture()
  makeBusy(fixture, 4n)
  fixture.answer(fixture.admitted())
  expect(fixture.spares.take(fixture.call(holdMicros, limits))).toBeUndefined()
  expect(fixture.givenBack).toHaveLength("rpm" in limits ? 4 : 0)
})

it("answers no dry run, look or line of a batch, and no other key or mode", () => {
  const fixture = openFixture()
  const { spares, call } = fixture
  makeBusy(fixture)
  fixture.answer(fixture.admitted())
  for (const counts of ["rpm", "peek", "money"] as const)
    expect(spares.take({ ...call(), counts })).toBeUndefined()
  const { caller, ...rest } = call()
  for (const other of [
    { keyId: "other" },
    { tenant: { account: "a", mode: "test" as const } },
    { tenant: { account: "b", mode: "live" as const } },
  ])
    expect(spares.take({ ...rest, caller: { ...caller, ...other } })).toBeUndefined()
  expect(spares.take(call())).toBeDefined()
})

it("gives back what was not used in its time, and answers no more with it", () => {
  const fixture = openFixture()
  const { spares, call, pass, givenBack, asked } = fixture
  makeBusy(fixture)
  pass(100)
  fixture.answer(fixture.admitted())
  pass(149)
  expect(spares.take(call())).toBeDefined()
  fixture.clock.advance(1)
  expect(spares.take(call())).toBeUndefined()
  expect(givenBack).toEqual([])
  pass(250)
  expect(givenBack).toEqual(asked.slice(1).map(({ id }) => id))
})

it("asks no more for a while after a refusal, or no answer", () => {
  for (const end of ["refused", "lost"] as const) {
    const fixture = openFixture()
    const { admitted, asked, pass, answer, givenBack } = fixture
    makeBusy(fixture)
    const refused = { ...admitted(), refused: { reason: "rpm" as const, retryAfterMs: 1 } }
    answer({ refused, lost: undefined }[end])
    makeBusy(fixture)
    expect({ end, asked: asked.length }).toEqual({ end, asked: 4 })
    pass(1_000)
    expect({ end, givenBack }).toEqual({ end, givenBack: [] })
    makeBusy(fixture)
    expect({ end, asked: asked.length }).toEqual({ end, asked: 8 })
  }
})

/** What is asked for now is answered so many ms later. */
const answeredAfter = (ms: number, fixture: Fixture) => {
  makeBusy(fixture)
  fixture.pass(ms)
  fixture.answer(fixture.admitted())
}

it("asks on after an answer that came too late, and no more for a while after a second in a row", () => {
  const fixture = openFixture()
  const { asked, pass, givenBack } = fixture
  for (const ms of [250, 249, 250, 400]) {
    answeredAfter(ms, fixture)
    pass(1)
  }
  expect(asked).toHaveLength(16)
  makeBusy(fixture)
  expect(asked).toHaveLength(16)
  expect(givenBack).toEqual(asked.map(({ id }) => id))
  pass(999)
  makeBusy(fixture)
  expect(asked).toHaveLength(20)
})

it("takes answers that came too late together for one", () => {
  const fixture = openFixture(8)
  makeBusy(fixture)
  fixture.pass(10)
  for (let i = 0; i < 4; i++) fixture.spares.take(fixture.call())
  expect(fixture.asked).toHaveLength(8)
  fixture.pass(240)
  fixture.answer(fixture.admitted())
  fixture.pass(10)
  makeBusy(fixture)
  expect(fixture.asked).toHaveLength(12)
})

it("counts what waits as not used where the database answers a request, and stops at its refusal", () => {
  const fixture = openFixture()
  const { spares, call, admitted } = fixture
  expect(spares.corrected(call(), admitted(7))).toEqual(admitted(7))
  makeBusy(fixture)
  fixture.answer(admitted())
  expect(spares.corrected(call(), admitted(7))).toEqual(admitted(11))
  expect(spares.take(call())).toMatchObject({ remaining: 10 })
  const refused = { ...admitted(7), refused: { reason: "rpm" as const, retryAfterMs: 1 } }
  expect(spares.corrected(call(), refused)).toEqual({ ...refused, ...admitted(10) })
  const before = fixture.asked.length
  for (let i = 0; i < 8; i++) spares.take(call())
  expect(fixture.asked).toHaveLength(before)
})

it.each([
  ["balance", ["a b", "b"]],
  ["rpm", ["a b", "a other", "b"]],
] as const)("gives way to a request that is refused by %s", async (reason, keep) => {
  const fixture = openFixture()
  const { spares, call, givenBack, asked } = fixture
  const owners = { a: call(), "a other": call(), "a b": call(), b: call(0n, {}, "b") }
  const { caller } = owners["a other"]
  Object.assign(owners["a other"], { caller: { ...caller, keyId: "other" } })
  Object.assign(owners["a b"], {
    caller: { ...caller, tenant: { ...caller.tenant, account: "c" } },
  })
  for (const owner of Object.values(owners)) for (let i = 0; i < 4; i++) spares.take(owner)
  fixture.answer(fixture.admitted())
  const kept = asked.filter(({ caller }) => keep.some((name) => owners[name].caller === caller))
  await Effect.runPromise(spares.giveWay(call(), reason) ?? Effect.die("nothing"))
  expect(givenBack).toHaveLength(asked.length - kept.length)
  expect(kept.filter(({ id }) => givenBack.includes(id))).toEqual([])
  expect(spares.giveWay(call(), reason)).toBeUndefined()
  makeBusy(fixture)
  expect(asked, "asks for no new ones meanwhile").toHaveLength(16)
})

it("a request that is refused waits for what is asked for", async () => {
  const fixture = openFixture()
  const { spares, call, givenBack } = fixture
  makeBusy(fixture)
  const waits = Effect.runPromise(spares.giveWay(call(), "rpm") ?? Effect.die("nothing"))
  fixture.answer(fixture.admitted())
  await waits
  expect(givenBack).toEqual([])
  await Effect.runPromise(spares.giveWay(call(), "rpm") ?? Effect.die("nothing"))
  expect(givenBack).toHaveLength(4)
})
