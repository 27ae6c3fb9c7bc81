import { createPrivateKey, createPublicKey, sign as signWith } from "node:crypto"
import { Effect } from "effect"
import fc from "fast-check"
import { CompactSign, compactVerify, createLocalJWKSet, generateKeyPair } from "jose"
import { sql } from "kysely"
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest"
import type { PortError, SigningPurpose } from "../../core/index.ts"
import { runs } from "../../testing/property.ts"
import { headerOf, maxCharacters } from "./compact-jws.ts"
import { dayMs, hourMs, openReplicas } from "./testing/replicas.ts"
import { renewKeys } from "./upkeep.ts"

let fixture: Awaited<ReturnType<typeof openReplicas>>
beforeAll(async () => {
  fixture = await openReplicas()
})
afterAll(() => fixture?.close())
beforeEach(() => fixture.empty())

type Replica = ReturnType<typeof fixture.replica>
const run = <A>(effect: Effect.Effect<A, PortError>) => Effect.runPromise(effect)
const sign = (replica: Replica, purpose: SigningPurpose, payload: unknown = { sub: "acct_1" }) =>
  run(replica.signer.sign(purpose, payload))
const verify = (replica: Replica, purpose: SigningPurpose, jws: string) =>
  run(replica.signer.verify(purpose, jws))
const kidOf = (jws: string) =>
  JSON.parse(Buffer.from(jws.split(".")[0]!, "base64url").toString()).kid as string
const jwks = async (replica: Replica) => ({
  keys: (await run(replica.ring.published)).map(({ kid, publicJwk }) => ({
    ...publicJwk,
    kid,
    alg: "EdDSA",
    use: "sig",
  })),
})

describe("a signature", () => {
  it("verifies for its purpose only, here and with the published key alone", async () => {
    const one = fixture.replica()
    for (const purpose of ["session", "receipt"] as const) {
      const jws = await sign(one, purpose, { purpose, rp: 1.5, é: ["✓", null] })
      expect(await verify(one, purpose, jws)).toEqual({ purpose, rp: 1.5, é: ["✓", null] })
      expect(await verify(one, purpose === "session" ? "receipt" : "session", jws)).toBeUndefined()
      const offline = await compactVerify(jws, createLocalJWKSet(await jwks(one)))
      expect(offline.protectedHeader).toEqual(headerOf(purpose, kidOf(jws)))
    }
  })

  it("of a key for another purpose is none, though the header says so", async () => {
    const one = fixture.replica()
    const session = await run(one.ring.current("session"))
    const forged = await new CompactSign(Buffer.from("{}"))
      .setProtectedHeader(headerOf("receipt", session.kid))
      .sign(session.signKey)
    expect(await verify(one, "receipt", forged)).toBeUndefined()
  })

  it("of anybody else is none: alg none, HS256 with the public key, a key of their own", async () => {
    const one = fixture.replica()
    const jws = await sign(one, "session")
    const [, body] = jws.split(".")
    const key = await run(one.ring.current("session"))
    const head = (more: object) =>
      Buffer.from(JSON.stringify({ ...headerOf("session", key.kid), ...more })).toString(
        "base64url",
      )
    const publicBytes = Buffer.from(key.publicJwk.x, "base64url")
    const hs256 = await new CompactSign(Buffer.from("{}"))
      .setProtectedHeader({ alg: "HS256", kid: key.kid })
      .sign(publicBytes)
    const stranger = await generateKeyPair("EdDSA", { crv: "Ed25519" })
    const self = await new CompactSign(Buffer.from("{}"))
      .setProtectedHeader(headerOf("session", key.kid))
      .sign(stranger.privateKey)
    const zeros = `${head({})}.${body}.${Buffer.alloc(64).toString("base64url")}`
    for (const forged of [
      `${head({ alg: "none" })}.${body}.`,
      `${head({ alg: "none" })}.${body}.${"A".repeat(86)}`,
      hs256,
      self,
      zeros,
    ])
      expect(await verify(one, "session", forged)).toBeUndefined()
    expect(await verify(one, "session", jws)).toEqual({ sub: "acct_1" })
  })

  it("is none with any letter changed, and what is verified is what was signed", async () => {
    const one = fixture.replica()
    const jws = await sign(one, "session", { sub: "acct_1", role: "user" })
    const letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_."
    const altered = Array.from(
      jws,
      (letter, at) =>
        jws.slice(0, at) +
        letters[(letters.indexOf(letter) + 1 + (at % 63)) % letters.length]! +
        jws.slice(at + 1),
    )
    const answers = await Promise.all(altered.map((text) => verify(one, "session", text)))
    expect(answers.flatMap((answer, at) => (answer === undefined ? [] : [at]))).toEqual([])
    expect(one.asked.times).toBeLessThan(12)
  })

  it("that is garbage is undefined, never a failure", async () => {
    const one = fixture.replica()
    const jws = await sign(one, "session")
    const [head, body, signature] = jws.split(".") as [string, string, string]
    const part = fc.oneof(
      fc.string({ unit: "binary" }),
      fc.base64String(),
      fc.constantFrom("", head, body, signature),
    )
    const garbage = fc.oneof(
      fc.string({ unit: "binary", maxLength: 20_000 }),
      fc.array(part, { maxLength: 5 }).map((parts) => parts.join(".")),
    )
    await fc.assert(
      fc.asyncProperty(garbage, async (text) => {
        if (text !== jws) expect(await verify(one, "session", text)).toBeUndefined()
      }),
      { numRuns: runs(500) },
    )
    for (const value of [undefined, null, 3, {}, []])
      expect(await verify(one, "session", value as never)).toBeUndefined()
  })

  it("is refused at once when the payload is no JSON or too large to be verified again", async () => {
    const one = fixture.replica()
    expect(
      await Effect.runPromise(Effect.flip(one.signer.sign("session", undefined))),
    ).toMatchObject({ _tag: "PortError", port: "signer" })
    expect(
      await Effect.runPromise(Effect.flip(one.signer.sign("session", "x".repeat(maxCharacters)))),
    ).toMatchObject({ message: expect.stringContaining("too large") })
  })
})

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

  it("keep the private half sealed", async () => {
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

  it("the hourly look makes the next key, erases private halves that sign no more and session keys that are over", async () => {
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

it("an ordinary program verifies a receipt with the published key", async () => {
  const one = fixture.replica()
  const jws = await sign(one, "receipt", { call_id: "c" })
  const { verify: check } = await import("node:crypto")
  const { kty, crv, x } = (await jwks(one)).keys[0]!
  const [head, body, signature] = jws.split(".") as [string, string, string]
  expect(
    check(
      null,
      Buffer.from(`${head}.${body}`),
      createPublicKey({ key: { kty, crv, x }, format: "jwk" }),
      Buffer.from(signature, "base64url"),
    ),
  ).toBe(true)
  // that the test can fail
  const pair = createPrivateKey({
    key: { kty: "OKP", crv: "Ed25519", x, d: Buffer.alloc(32, 1).toString("base64url") },
    format: "jwk",
  })
  expect(
    check(
      null,
      Buffer.from(`${head}.${body}`),
      createPublicKey({ key: { kty, crv, x }, format: "jwk" }),
      signWith(null, Buffer.from(`${head}.${body}`), pair),
    ),
  ).toBe(false)
})
