import { Effect } from "effect"
import fc from "fast-check"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import type { Tenant } from "../../core/caller.ts"
import type { Idempotency } from "../../core/ports/idempotency.ts"
import type { FakeClock } from "../fakes/clock.ts"

export interface OpenedIdempotency {
  readonly idempotency: Idempotency
  /** Another replica over the same store. */
  readonly second: Idempotency
  readonly clock: FakeClock
  close?(): Promise<void>
}

const leaseMs = 15_000
const hourMs = 3_600_000
const ada: Tenant = { account: "acct_ada", mode: "live" }
const run = Effect.runPromise

/** What every Idempotency must do. `open` is called once; each test uses keys of its own. */
export const idempotencyContract = (name: string, open: () => Promise<OpenedIdempotency>): void => {
  describe(`${name} keeps the idempotency contract`, () => {
    let opened: OpenedIdempotency
    let count = 0
    const freshKey = () => `key-${++count}`
    const begin = (key: string, fingerprint = "body", tenant = ada) =>
      run(opened.idempotency.begin(tenant, key, fingerprint))
    const finish = (key: string, json: unknown = { ok: true }, tenant = ada) =>
      run(opened.idempotency.finish(tenant, key, { status: 200, json }))
    const forget = (key: string, tenant = ada) => run(opened.idempotency.forget(tenant, key))
    beforeAll(async () => {
      opened = await open()
    })
    afterAll(() => opened?.close?.())

    it("a key is new once, then running, then done with the first reply", async () => {
      const key = freshKey()
      expect(await begin(key)).toEqual({ state: "new" })
      expect(await begin(key)).toEqual({ state: "running", leaseLeftMs: leaseMs })
      await finish(key, { id: "file-1", list: [1, null, "é"] })
      expect(await begin(key)).toEqual({
        state: "done",
        reply: { status: 200, json: { id: "file-1", list: [1, null, "é"] } },
      })
    })

    it("another body under the key is a mismatch, running or done", async () => {
      const key = freshKey()
      await begin(key, "one")
      expect(await begin(key, "two")).toEqual({ state: "mismatch" })
      await finish(key)
      expect(await begin(key, "two")).toEqual({ state: "mismatch" })
      expect((await begin(key, "one")).state).toBe("done")
    })

    it("of many at once exactly one is new", async () => {
      for (let round = 0; round < 5; round++) {
        const key = freshKey()
        const states = await Promise.all(Array.from({ length: 20 }, () => begin(key)))
        expect(states.filter((s) => s.state === "new")).toHaveLength(1)
        expect(states.filter((s) => s.state === "running")).toHaveLength(19)
      }
    })

    it("a forgotten key is new, with any body", async () => {
      const key = freshKey()
      await begin(key, "one")
      await forget(key)
      expect(await begin(key, "two")).toEqual({ state: "new" })
    })

    it("a reply that was given is neither forgotten nor replaced", async () => {
      const key = freshKey()
      await begin(key)
      await finish(key, "first")
      await finish(key, "second")
      await forget(key)
      expect(await begin(key)).toEqual({ state: "done", reply: { status: 200, json: "first" } })
    })

    it("finish and forget of a key that never began change nothing", async () => {
      const key = freshKey()
      await finish(key)
      await forget(key)
      expect(await begin(key)).toEqual({ state: "new" })
    })

    it("accounts and modes don't see each other's keys", async () => {
      const key = freshKey()
      for (const tenant of [
        ada,
        { account: "acct_ada", mode: "test" },
        { account: "acct_bob", mode: "live" },
      ] as const) {
        expect(await begin(key, "body", tenant)).toEqual({ state: "new" })
        await finish(key, tenant, tenant)
      }
      expect(await begin(key)).toEqual({ state: "done", reply: { status: 200, json: ada } })
    })

    it("a running key is new again when its server has not renewed it for 15 seconds, once", async () => {
      const key = freshKey()
      await begin(key)
      opened.clock.advance(4_000)
      for (const store of [opened.idempotency, opened.second])
        expect(await run(store.begin(ada, key, "body"))).toEqual({
          state: "running",
          leaseLeftMs: leaseMs - 4_000,
        })
      opened.clock.advance(leaseMs - 4_001)
      expect(await begin(key)).toEqual({ state: "running", leaseLeftMs: 1 })
      opened.clock.advance(1)
      const states = await Promise.all(Array.from({ length: 10 }, () => begin(key, "other")))
      expect(states.filter((s) => s.state === "new")).toHaveLength(1)
      expect((await begin(key, "other")).state).toBe("running")
    })

    it("a reply is remembered for 24 hours", async () => {
      const key = freshKey()
      await begin(key)
      await finish(key)
      opened.clock.advance(24 * hourMs - 1)
      expect((await begin(key)).state).toBe("done")
      opened.clock.advance(1)
      expect(await begin(key, "other")).toEqual({ state: "new" })
    })

    it("the call id of a reply comes back with it, and none where there was none", async () => {
      const [named, nameless] = [freshKey(), freshKey()]
      await begin(named)
      await begin(nameless)
      await run(
        opened.idempotency.finish(ada, named, {
          status: 201,
          json: 1,
          callId: "0199c0de-0000-7000-8000-000000000001",
        }),
      )
      await finish(nameless, 1)
      for (const store of [opened.idempotency, opened.second]) {
        expect(await run(store.begin(ada, named, "body"))).toStrictEqual({
          state: "done",
          reply: { status: 201, json: 1, callId: "0199c0de-0000-7000-8000-000000000001" },
        })
        expect(await run(store.begin(ada, nameless, "body"))).toStrictEqual({
          state: "done",
          reply: { status: 200, json: 1 },
        })
      }
      opened.clock.advance(24 * hourMs)
      await begin(named)
      await finish(named, 2)
      expect(await begin(named)).toStrictEqual({ state: "done", reply: { status: 200, json: 2 } })
    })

    it("replicas see each other's keys", async () => {
      const key = freshKey()
      const states = await Promise.all(
        Array.from({ length: 20 }, (_, n) =>
          run((n % 2 ? opened.idempotency : opened.second).begin(ada, key, "body")),
        ),
      )
      expect(states.filter((s) => s.state === "new")).toHaveLength(1)
      expect(states.filter((s) => s.state === "running")).toHaveLength(19)
      expect(await run(opened.second.begin(ada, key, "other"))).toEqual({ state: "mismatch" })
    })

    it.each(["finish", "forget"] as const)(
      "%s of a request whose lease ended leaves the one of another replica alone",
      async (late) => {
        const key = freshKey()
        await begin(key, "one")
        opened.clock.advance(leaseMs)
        expect(await run(opened.second.begin(ada, key, "two"))).toEqual({ state: "new" })
        await (late === "finish" ? finish(key, "of one") : forget(key))
        expect(await begin(key, "two")).toMatchObject({ state: "running" })
        await run(opened.second.finish(ada, key, { status: 200, json: "of two" }))
        await (late === "finish" ? finish(key, "of one") : forget(key))
        expect(await begin(key, "two")).toEqual({
          state: "done",
          reply: { status: 200, json: "of two" },
        })
      },
    )

    it("a request may finish after its lease, if nobody has begun anew", async () => {
      const key = freshKey()
      await begin(key)
      opened.clock.advance(2 * leaseMs)
      await finish(key, "late")
      expect(await run(opened.second.begin(ada, key, "body"))).toEqual({
        state: "done",
        reply: { status: 200, json: "late" },
      })
    })

    it("only the replica that began a key ends it", async () => {
      const key = freshKey()
      await begin(key)
      await run(opened.second.finish(ada, key, { status: 200, json: "foreign" }))
      await run(opened.second.forget(ada, key))
      expect(await begin(key)).toMatchObject({ state: "running" })
      await finish(key, "own")
      expect(await begin(key)).toEqual({ state: "done", reply: { status: 200, json: "own" } })
    })

    it("any JSON comes back as it was", async () => {
      await fc.assert(
        fc.asyncProperty(
          fc.jsonValue(),
          fc.integer({ min: 200, max: 599 }),
          async (json, status) => {
            const key = freshKey()
            await begin(key)
            await run(opened.idempotency.finish(ada, key, { status, json }))
            expect(await begin(key)).toEqual({
              state: "done",
              reply: { status, json: JSON.parse(JSON.stringify(json)) },
            })
          },
        ),
        { numRuns: 30 },
      )
    })

    it("follows its state machine over any order of calls, by two replicas", async () => {
      const who = fc.constantFrom("idempotency" as const, "second" as const)
      const step = fc.oneof(
        fc.record({ call: fc.constant("begin" as const), who, body: fc.constantFrom("a", "b") }),
        fc.record({ call: fc.constantFrom("finish" as const, "forget" as const), who }),
        fc.record({
          call: fc.constant("wait" as const),
          ms: fc.constantFrom(1_000, leaseMs, 24 * hourMs),
        }),
      )
      await fc.assert(
        fc.asyncProperty(fc.array(step, { maxLength: 14 }), async (steps) => {
          const key = freshKey()
          let model: { by: string; body: string; done: boolean; endsMs: number } | undefined
          for (const s of steps) {
            const nowMs = opened.clock.nowMs()
            if (s.call === "wait") opened.clock.advance(s.ms)
            else if (s.call === "begin") {
              const live = model && model.endsMs > nowMs ? model : undefined
              const expected = !live
                ? "new"
                : live.body !== s.body
                  ? "mismatch"
                  : live.done
                    ? "done"
                    : "running"
              expect((await run(opened[s.who].begin(ada, key, s.body))).state).toBe(expected)
              if (!live) model = { by: s.who, body: s.body, done: false, endsMs: nowMs + leaseMs }
            } else {
              const mine = model?.by === s.who && !model.done
              if (s.call === "finish") {
                await run(opened[s.who].finish(ada, key, { status: 200, json: null }))
                if (model && mine) model = { ...model, done: true, endsMs: nowMs + 24 * hourMs }
              } else {
                await run(opened[s.who].forget(ada, key))
                if (mine) model = undefined
              }
            }
          }
        }),
        { numRuns: 60 },
      )
    })
  })
}
