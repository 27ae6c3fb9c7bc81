import fc from "fast-check"
import { expect, it } from "vitest"
import { runs } from "../../testing/property.ts"
import { headerOf, maxCharacters, readCompactJws } from "./compact-jws.ts"

const encode = (value: unknown) =>
  Buffer.from(typeof value === "string" ? value : JSON.stringify(value)).toString("base64url")
const signature = Buffer.alloc(64, 7).toString("base64url")
const jwsOf = (header: unknown, payload: unknown = { sub: "a" }) =>
  `${encode(header)}.${encode(payload)}.${signature}`
const good = headerOf("session", "kid-1")

it("reads what a signer of ours writes, any JSON in it", () => {
  expect(readCompactJws(jwsOf(good), "session")).toEqual({ kid: "kid-1", payload: { sub: "a" } })
  fc.assert(
    fc.property(fc.jsonValue(), (payload) => {
      expect(readCompactJws(jwsOf(good, JSON.stringify(payload)), "session")?.payload).toEqual(
        JSON.parse(JSON.stringify(payload)),
      )
    }),
  )
})

const refused: Readonly<Record<string, unknown>> = {
  "alg none": { ...good, alg: "none" },
  "alg in another case": { ...good, alg: "eddsa" },
  HS256: { ...good, alg: "HS256" },
  "no alg": { kid: "kid-1", typ: good.typ },
  "another purpose": headerOf("receipt", "kid-1"),
  "no purpose": { alg: "EdDSA", kid: "kid-1" },
  "no kid": { alg: "EdDSA", typ: good.typ },
  "a kid that is no text": { ...good, kid: ["kid-1"] },
  "a key that it brings along": { ...good, jwk: { kty: "OKP", crv: "Ed25519", x: "AA" } },
  "an address of keys": { ...good, jku: "https://evil.example/jwks.json" },
  "critical extensions": { ...good, crit: ["exp"], exp: 1 },
  "an unencoded payload": { ...good, b64: false, crit: ["b64"] },
  "a list": [good],
  null: "null",
  "no JSON": "{",
}
it.each(Object.entries(refused))("refuses a header with %s", (_, header) =>
  expect(readCompactJws(jwsOf(header), "session")).toBeUndefined(),
)

it("refuses what has another form", () => {
  const jws = jwsOf(good)
  const unsigned = jws.slice(0, jws.lastIndexOf(".") + 1)
  const bad = [
    "",
    ".",
    "..",
    unsigned,
    `${jws}.`,
    ` ${jws}`,
    `${jws}\n`,
    `${jws}=`,
    `${jws.slice(0, -1)}`,
    `${jws}A`,
    jws.replaceAll(".", ","),
    jws.replace(".", ".\0"),
  ]
  for (const one of [...bad, undefined, null, 7, {}, [jws], { toString: () => jws }])
    expect(readCompactJws(one, "session"), String(one)).toBeUndefined()
  // the last letter of 64 bytes has four unused bits
  expect(readCompactJws(`${jws.slice(0, -1)}x`, "session")).toBeUndefined()
  expect(readCompactJws(jwsOf(good, "not json"), "session")).toBeUndefined()
  expect(
    readCompactJws(
      `${encode(good)}.${Buffer.from([0x22, 0xff, 0x22]).toString("base64url")}.${signature}`,
      "session",
    ),
  ).toBeUndefined()
})

it("refuses what is too long before it looks inside", () => {
  const padded = (length: number) => jwsOf(good, { pad: "x".repeat(length) })
  let length = 5_000
  while (padded(length + 1).length <= maxCharacters) length++
  expect(readCompactJws(padded(length), "session")).toBeDefined()
  expect(readCompactJws(padded(length + 1), "session")).toBeUndefined()
  expect(readCompactJws("A".repeat(50_000_000), "session")).toBeUndefined()
})

it("answers, whatever comes", () => {
  const part = fc.oneof(
    fc.base64String(),
    fc.string({ unit: "binary" }),
    fc.json().map(encode),
    fc.constant(encode(good)),
  )
  fc.assert(
    fc.property(
      fc.oneof(
        fc.string({ unit: "binary" }),
        fc
          .tuple(part, part, fc.oneof(part, fc.constant(signature)))
          .map((parts) => parts.join(".")),
      ),
      (text) => {
        const read = readCompactJws(text, "session")
        if (read !== undefined) expect(text.split(".")[0]).toBe(encode(good))
      },
    ),
    { numRuns: runs(1_000) },
  )
})
