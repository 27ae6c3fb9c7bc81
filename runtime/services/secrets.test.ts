import { mkdtempSync, readFileSync, rmSync, statSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import fc from "fast-check"
import { afterAll, expect, it } from "vitest"
import { lazySecrets, makeSecrets, masterSecret } from "./secrets.ts"

const folder = mkdtempSync(join(tmpdir(), "rakit-secrets-"))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

it("decrypts what it encrypted, and never encrypts twice to the same text", () => {
  const secrets = makeSecrets("master")
  fc.assert(
    fc.property(fc.string({ unit: "grapheme", maxLength: 200 }), (plain) => {
      const encrypted = secrets.encrypt(plain)
      expect(secrets.decrypt(encrypted)).toBe(plain)
      expect(secrets.encrypt(plain)).not.toBe(encrypted)
      expect(encrypted).toMatch(/^[0-9a-f]{12}\.[\w-]+$/)
    }),
  )
})

it("decrypts nothing that was altered, cut, or encrypted with another master", () => {
  const secrets = makeSecrets("master")
  const encrypted = secrets.encrypt("whsec_1234567890")
  fc.assert(
    fc.property(fc.nat(encrypted.length - 1), fc.constantFrom("A", "b", "-", "."), (at, letter) => {
      fc.pre(encrypted[at] !== letter)
      const altered = encrypted.slice(0, at) + letter + encrypted.slice(at + 1)
      // the last letters of base64 may hold bits that mean nothing
      if (at < encrypted.length - 1) expect(secrets.decrypt(altered)).toBeUndefined()
      expect(secrets.decrypt(encrypted.slice(0, at))).toBeUndefined()
    }),
  )
  expect(makeSecrets("another").decrypt(encrypted)).toBeUndefined()
})

it("makes the master once, for its owner only, and keeps it", () => {
  const dataDir = join(folder, "data")
  const first = masterSecret("", dataDir)
  expect(first).toHaveLength(43)
  expect(masterSecret("", dataDir)).toBe(first)
  expect(readFileSync(join(dataDir, "secret.key"), "utf8")).toBe(first)
  expect(statSync(join(dataDir, "secret.key")).mode & 0o777).toBe(0o600)
  expect(masterSecret("given by the operator", dataDir)).toBe("given by the operator")
  expect(lazySecrets("", dataDir).decrypt(makeSecrets(first).encrypt("x"))).toBe("x")
})
