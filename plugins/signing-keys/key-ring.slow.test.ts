import { Effect } from "effect"
import { compactVerify, createLocalJWKSet } from "jose"
import { sql } from "kysely"
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest"
import { headerOf } from "./compact-jws.ts"
import { dayMs, hourMs, openReplicas } from "./testing/replicas.ts"
import { jwks, kidOf, run, sign, verify } from "./testing/signing.ts"
import { renewKeys } from "./upkeep.ts"

let fixture: Awaited<ReturnType<typeof openReplicas>>
beforeAll(async () => {
  fixture = await openReplicas()
})
afterAll(() => fixture?.close())
beforeEach(() => fixture.empty())

describe("two replicas over one database", () => {
  it("with one secret share the key, however many sign for the first time at once", async () => {
    const [one, two] = [fixture.replica(), fixture.replica()]
    const all = await Promise.all(
      Array.from({ length: 40 }, (_, n) =>
        sign(n % 2 ? one : two, n % 4 < 2 ? "session" : "receipt"),
      ),
    )
    expect((await fixture.rows()).map((row) => row.purpose).sort()).toEqual(["receipt", "session"])
    for (const [n, jws] of all.entries())
      expect(await verify(n % 2 ? two : one, n % 4 < 2 ? "session" : "receipt", jws)).toEqual({
        sub: "acct_1",
      })
  })

  it("with different secrets verify each other's signatures, and publish all keys", async () => {
    const [one, two] = [fixture.replica({ secret: "one" }), fixture.replica({ secret: "two" })]
    const [first, second] = [await sign(one, "receipt"), await sign(two, "receipt")]
    expect(kidOf(first)).not.toBe(kidOf(second))
    for (const replica of [one, two]) {
      fixture.clock.advance(1_000)
      for (const jws of [first, second]) {
        expect(await verify(replica, "receipt", jws)).toEqual({ sub: "acct_1" })
        await compactVerify(jws, createLocalJWKSet(await jwks(replica)))
      }
    }
    expect(two.log.lines).toEqual([
      expect.objectContaining({
        level: "warn",
        message: expect.stringContaining("RAKIT_SECRET_KEY"),
      }),
    ])
    expect(
      (await fixture.rows())
        .map((row) => row.sealed_by)
        .every((by, at, all) => all.indexOf(by) === at),
    ).toBe(true)
  })

  it("keep the private half encrypted", async () => {
    const one = fixture.replica()
    await sign(one, "session")
    const [row] = await fixture.rows()
    expect(row?.private_jwk).toMatch(/^[0-9a-f]{12}\.[\w-]+$/)
    expect(Object.keys((await run(one.ring.current("session"))).publicJwk).sort()).toEqual([
      "crv",
      "kty",
      "x",
    ])
  })

  it("look for unknown keys once a second, however many ask; known ones need no database", async () => {
    const one = fixture.replica()
    const jws = await sign(one, "session")
    const [, body, signature] = jws.split(".")
    const unknown = (n: number) =>
      `${Buffer.from(JSON.stringify(headerOf("session", `kid-${n}`))).toString("base64url")}.${body}.${signature}`
    fixture.clock.advance(1_000)
    const before = one.asked.times
    const answers = await Promise.all(
      Array.from({ length: 300 }, (_, n) => verify(one, "session", unknown(n))),
    )
    expect(answers.every((answer) => answer === undefined)).toBe(true)
    expect(one.asked.times - before).toBeLessThanOrEqual(2)
    one.asked.isDown = true
    expect(await verify(one, "session", jws)).toEqual({ sub: "acct_1" })
    expect((await jwks(one)).keys).toHaveLength(1)
    fixture.clock.advance(1_000)
    expect((await jwks(one)).keys).toHaveLength(1)
    // an unknown key while the database is down is a failure, not a wrong signature
    fixture.clock.advance(1_000)
    expect(
      await Effect.runPromise(Effect.flip(one.signer.verify("session", unknown(1)))),
    ).toMatchObject({ _tag: "PortError" })
    one.asked.isDown = false
  })

  it("a row that can't be read takes nobody with it", async () => {
    const one = fixture.replica()
    const jws = await sign(one, "session")
    await sql`INSERT INTO signing_key SELECT 'broken', purpose, '{"kty":"oct","k":"AAAA"}', 'nonsense', sealed_by, created_at, retires_at, accepted_until FROM signing_key`.execute(
      fixture.database.queries(),
    )
    const two = fixture.replica()
    expect(await verify(two, "session", jws)).toEqual({ sub: "acct_1" })
    expect(two.log.lines).toEqual([
      expect.objectContaining({
        level: "error",
        fields: expect.objectContaining({ kid: "broken" }),
      }),
    ])
  })
})

describe("rotation", () => {
  it("makes a new key when one has signed for its days; sessions verify for 25 hours more, receipts forever", async () => {
    const [one, two] = [fixture.replica({ rotateDays: 2 }), fixture.replica({ rotateDays: 2 })]
    const [session, receipt] = [await sign(one, "session"), await sign(one, "receipt")]
    fixture.clock.advance(2 * dayMs - 1)
    expect(kidOf(await sign(one, "session"))).toBe(kidOf(session))
    fixture.clock.advance(1)
    const next = await sign(one, "session")
    expect(kidOf(next)).not.toBe(kidOf(session))
    expect(kidOf(await sign(two, "session"))).toBe(kidOf(next))
    fixture.clock.advance(25 * hourMs - 1)
    for (const replica of [one, two, fixture.replica()]) {
      expect(await verify(replica, "session", session)).toEqual({ sub: "acct_1" })
      expect((await jwks(replica)).keys.map((key) => key.kid)).toContain(kidOf(session))
    }
    fixture.clock.advance(1)
    for (const replica of [one, two, fixture.replica()]) {
      expect(await verify(replica, "session", session)).toBeUndefined()
      expect((await jwks(replica)).keys.map((key) => key.kid)).not.toContain(kidOf(session))
    }
    fixture.clock.advance(3_650 * dayMs)
    for (const replica of [one, fixture.replica()]) {
      expect(await verify(replica, "receipt", receipt)).toEqual({ sub: "acct_1" })
      expect((await jwks(replica)).keys.map((key) => key.kid)).toContain(kidOf(receipt))
    }
  })

  it("by many replicas at once gives one key, and all verify", async () => {
    const replicas = Array.from({ length: 6 }, () => fixture.replica())
    await Promise.all(replicas.map((replica) => run(renewKeys(replica.ring))))
    fixture.clock.advance(30 * dayMs)
    const all = await Promise.all(replicas.map((replica) => sign(replica, "session")))
    expect(new Set(all.map(kidOf)).size).toBe(1)
    expect((await fixture.rows()).filter((row) => row.purpose === "session")).toHaveLength(2)
    for (const replica of replicas)
      for (const jws of all)
        expect(await verify(replica, "session", jws)).toEqual({ sub: "acct_1" })
  })

  it("the hourly renewal makes the next key, erases private halves that sign no more and session keys that are over", async () => {
    const one = fixture.replica({ rotateDays: 1 })
    await run(renewKeys(one.ring))
    expect(await fixture.rows()).toHaveLength(2)
    fixture.clock.advance(dayMs)
    await run(renewKeys(one.ring))
    expect((await fixture.rows()).map((row) => row.private_jwk !== null)).toEqual([
      true,
      true,
      true,
      true,
    ])
    fixture.clock.advance(hourMs)
    await run(renewKeys(one.ring))
    expect((await fixture.rows()).filter((row) => row.private_jwk === null)).toHaveLength(2)
    fixture.clock.advance(25 * hourMs)
    await run(renewKeys(one.ring))
    const rows = await fixture.rows()
    expect(rows.filter((row) => row.purpose === "receipt")).toHaveLength(3)
    expect(rows.filter((row) => row.purpose === "session")).toHaveLength(2)
  })
})
