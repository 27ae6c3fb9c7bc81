import { createPrivateKey, createPublicKey, sign as signWith } from "node:crypto"
import { Effect } from "effect"
import fc from "fast-check"
import { CompactSign, compactVerify, createLocalJWKSet, generateKeyPair } from "jose"
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest"
import { runs } from "../../testing/property.ts"
import { headerOf, maxCharacters } from "./compact-jws.ts"
import { openReplicas } from "./testing/replicas.ts"
import { jwks, kidOf, run, sign, verify } from "./testing/signing.ts"

let fixture: Awaited<ReturnType<typeof openReplicas>>
beforeAll(async () => {
  fixture = await openReplicas()
})
afterAll(() => fixture?.close())
beforeEach(() => fixture.empty())

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
  // proof that the test can fail
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
