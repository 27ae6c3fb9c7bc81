import { Effect } from "effect"
import fc from "fast-check"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import type { Tenant } from "../caller.ts"
import type { Idempotency } from "../services/idempotency.ts"
import type { FakeClock } from "./clock.ts"

export interface IdempotencyWorld {
  readonly idempotency: Idempotency
  readonly clock: FakeClock
  close?(): Promise<void>
}

const minuteMs = 60_000
const hourMs = 60 * minuteMs
const ada: Tenant = { account: "acct_ada", mode: "live" }
const run = Effect.runPromise

/** What every Idempotency must do. `open` is called once; each test uses keys of its own. */
export const idempotencyContract = (name: string, open: () => Promise<IdempotencyWorld>): void => {
  describe(`${name} keeps the idempotency contract`, () => {
    let world: IdempotencyWorld
    let count = 0
    const freshKey = () => `key-${++count}`
    const begin = (key: string, fingerprint = "body", tenant = ada) => run(world.idempotency.begin(tenant, key, fingerprint))
    const finish = (key: string, json: unknown = { ok: true }, tenant = ada) => run(world.idempotency.finish(tenant, key, { status: 200, json }))
    const forget = (key: string, tenant = ada) => run(world.idempotency.forget(tenant, key))
    beforeAll(async () => {
      world = await open()
    })
    afterAll(() => world?.close?.())

    it("a key is new once, then running, then done with the first reply", async () => {
      const key = freshKey()
      expect(await begin(key)).toEqual({ state: "new" })
      expect(await begin(key)).toEqual({ state: "running" })
      await finish(key, { id: "file-1", list: [1, null, "é"] })
      expect(await begin(key)).toEqual({ state: "done", reply: { status: 200, json: { id: "file-1", list: [1, null, "é"] } } })
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
      for (const tenant of [ada, { account: "acct_ada", mode: "test" }, { account: "acct_bob", mode: "live" }] as const) {
        expect(await begin(key, "body", tenant)).toEqual({ state: "new" })
        await finish(key, tenant, tenant)
      }
      expect(await begin(key)).toEqual({ state: "done", reply: { status: 200, json: ada } })
    })

    it("a running key is new again after 15 minutes, once", async () => {
      const key = freshKey()
      await begin(key)
      world.clock.advance(15 * minuteMs - 1)
      expect((await begin(key)).state).toBe("running")
      world.clock.advance(1)
      const states = await Promise.all(Array.from({ length: 10 }, () => begin(key, "other")))
      expect(states.filter((s) => s.state === "new")).toHaveLength(1)
      expect((await begin(key, "other")).state).toBe("running")
    })

    it("a reply is remembered for 24 hours", async () => {
      const key = freshKey()
      await begin(key)
      await finish(key)
      world.clock.advance(24 * hourMs - 1)
      expect((await begin(key)).state).toBe("done")
      world.clock.advance(1)
      expect(await begin(key, "other")).toEqual({ state: "new" })
    })

    it("any JSON comes back as it was", async () => {
      await fc.assert(
        fc.asyncProperty(fc.jsonValue(), fc.integer({ min: 200, max: 599 }), async (json, status) => {
          const key = freshKey()
          await begin(key)
          await run(world.idempotency.finish(ada, key, { status, json }))
          expect(await begin(key)).toEqual({ state: "done", reply: { status, json: JSON.parse(JSON.stringify(json)) } })
        }),
        { numRuns: 30 },
      )
    })

    it("follows its state machine over any order of calls", async () => {
      const step = fc.oneof(
        fc.record({ call: fc.constant("begin" as const), body: fc.constantFrom("a", "b") }),
        fc.record({ call: fc.constantFrom("finish" as const, "forget" as const) }),
        fc.record({ call: fc.constant("wait" as const), ms: fc.constantFrom(minuteMs, 15 * minuteMs, 24 * hourMs) }),
      )
      await fc.assert(
        fc.asyncProperty(fc.array(step, { maxLength: 12 }), async (steps) => {
          const key = freshKey()
          let model: { body: string; done: boolean; endsMs: number } | undefined
          for (const s of steps) {
            const nowMs = world.clock.nowMs()
            if (s.call === "wait") world.clock.advance(s.ms)
            else if (s.call === "begin") {
              const live = model && model.endsMs > nowMs ? model : undefined
              const expected = !live ? "new" : live.body !== s.body ? "mismatch" : live.done ? "done" : "running"
              expect((await begin(key, s.body)).state).toBe(expected)
              if (!live) model = { body: s.body, done: false, endsMs: nowMs + 15 * minuteMs }
            } else if (s.call === "finish") {
              await finish(key)
              if (model && !model.done) model = { ...model, done: true, endsMs: nowMs + 24 * hourMs }
            } else {
              await forget(key)
              if (model && !model.done) model = undefined
            }
          }
        }),
        { numRuns: 40 },
      )
    })
  })
}
