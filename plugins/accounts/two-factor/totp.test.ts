import fc from "fast-check"
import { describe, expect, it } from "vitest"
import {
  hashRecoveryCode,
  makeRecoveryCodes,
  makeTotpSecret,
  stepOf,
  totpAt,
  totpUrl,
} from "./totp.ts"

/** The secret of RFC 6238, appendix B, in base32. */
const rfcSecret = "GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ"

describe("a code", () => {
  it.each([
    [59, "287082"],
    [1_111_111_109, "081804"],
    [1_234_567_890, "005924"],
    [2_000_000_000, "279037"],
  ])("at %i s is the one of RFC 6238: %s", (seconds, code) => {
    expect(totpAt(rfcSecret, seconds * 1000)).toBe(code)
    expect(stepOf(rfcSecret, code, seconds * 1000)).toBe(Math.floor(seconds / 30))
  })

  it("is right one step early or late, and no longer", () => {
    fc.assert(
      fc.property(fc.integer({ min: 10, max: 1e9 }), fc.integer({ min: -5, max: 5 }), (at, off) => {
        const code = totpAt(rfcSecret, at * 30_000)
        const step = stepOf(rfcSecret, code, (at + off) * 30_000)
        // two steps may share a code by chance
        if (Math.abs(off) <= 1) expect(step).toBeDefined()
        else if (step !== undefined) expect(totpAt(rfcSecret, step * 30_000)).toBe(code)
      }),
    )
  })

  it.each(["", "12345", "1234567", "abcdef", "٠٠٠٠٠٠"])("is never %j", (code) =>
    expect(stepOf(rfcSecret, code, 59_000)).toBeUndefined(),
  )
})

it("names the deployment and the account for authenticator apps", () => {
  const secret = makeTotpSecret()
  const url = new URL(totpUrl(secret, "my rakit", "ada@example.com"))
  expect(url.protocol).toBe("otpauth:")
  expect(url.searchParams.get("secret")).toBe(secret)
  expect(url.searchParams.get("issuer")).toBe("my rakit")
  expect(secret).toMatch(/^[A-Z2-7]{32}$/)
})

it("recovery codes differ, and are read however they are typed", () => {
  const codes = makeRecoveryCodes()
  expect(new Set(codes).size).toBe(10)
  for (const code of codes) {
    expect(code).toMatch(/^([a-z2-9]{4}-){3}[a-z2-9]{4}$/)
    expect(hashRecoveryCode(` ${code.toUpperCase().replaceAll("-", " ")}`)).toEqual(
      hashRecoveryCode(code),
    )
  }
})
