import { mkdtempSync, readFileSync, rmSync, statSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import fc from "fast-check"
import { afterAll, expect, it } from "vitest"
import { lazySecrets, makeSecrets, masterSecret } from "./secrets.ts"

const folder = mkdtempSync(join(tmpdir(), "rakit-secrets-"))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

it("opens what it sealed, and never seals twice to the same text", () => {
  const secrets = makeSecrets("master")
  fc.assert(
    fc.property(fc.string({ unit: "grapheme", maxLength: 200 }), (plain) => {
      const sealed = secrets.seal(plain)
      expect(secrets.open(sealed)).toBe(plain)
      expect(secrets.seal(plain)).not.toBe(sealed)
      expect(sealed).toMatch(/^[0-9a-f]{12}\.[\w-]+$/)
    }),
  )
})

it("opens nothing that was altered, cut, or sealed with another master", () => {
  const secrets = makeSecrets("master")
  const sealed = secrets.seal("whsec_1234567890")
  fc.assert(
    fc.property(fc.nat(sealed.length - 1), fc.constantFrom("A", "b", "-", "."), (at, letter) => {
      fc.pre(sealed[at] !== letter)
      const altered = sealed.slice(0, at) + letter + sealed.slice(at + 1)
      // the last letters of base64 may hold bits that mean nothing
      if (at < sealed.length - 1) expect(secrets.open(altered)).toBeUndefined()
      expect(secrets.open(sealed.slice(0, at))).toBeUndefined()
    }),
  )
  expect(makeSecrets("another").open(sealed)).toBeUndefined()
})

it("makes the master once, for its owner only, and keeps it", () => {
  const dataDir = join(folder, "data")
  const first = masterSecret("", dataDir)
  expect(first).toHaveLength(43)
  expect(masterSecret("", dataDir)).toBe(first)
  expect(readFileSync(join(dataDir, "secret.key"), "utf8")).toBe(first)
  expect(statSync(join(dataDir, "secret.key")).mode & 0o777).toBe(0o600)
  expect(masterSecret("given by the operator", dataDir)).toBe("given by the operator")
  expect(lazySecrets("", dataDir).open(makeSecrets(first).seal("x"))).toBe("x")
})
