import fc from "fast-check"
import { expect, it } from "vitest"
import { parseEmail } from "./email.ts"

it("stores addresses in one form", () => {
  expect(parseEmail(" Ada.Lovelace+x@Example.COM ")).toBe("ada.lovelace+x@example.com")
  expect(parseEmail("admin@rakit.local")).toBe("admin@rakit.local")
  expect(parseEmail("root@localhost")).toBe("root@localhost")
})

it("refuses what is none", () => {
  const bad = [
    "",
    "@",
    "a@",
    "@b.c",
    "a b@c.d",
    "a@b@c",
    "a@b..c",
    "a@.b",
    "a@b.",
    "a@-b.c",
    "a@b-.c",
    "<a@b.c>",
    `${"x".repeat(65)}@b.c`,
    `a@${"b.".repeat(130)}c`,
    "a\u0000@b.c",
    "é@b.c",
    "а@b.c",
    "a\ud800@b.c",
    "a@b.c\r\nBcc: d@e.f",
    "a@b.c,d@e.f",
    "a'; --@b.c",
    "a@[127.0.0.1]",
  ]
  for (const text of bad) expect(parseEmail(text), JSON.stringify(text)).toBeUndefined()
})

it("knows every common address, and reads its own form again", () => {
  fc.assert(
    fc.property(fc.emailAddress(), (address) => {
      const parsed = parseEmail(address)
      expect(parsed).toBe(address.toLowerCase())
      expect(parseEmail(parsed ?? "")).toBe(parsed)
    }),
  )
})

it("answers any text in no time", () => {
  const hostile = [`a@${"a-".repeat(5_000)}`, `${"a".repeat(100_000)}`, `a@${"a.".repeat(50_000)}!`]
  const startMs = performance.now()
  for (const text of hostile) parseEmail(text)
  expect(performance.now() - startMs).toBeLessThan(200)
})
