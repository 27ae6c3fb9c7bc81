import Stripe from "stripe"
import { describe, expect, it } from "vitest"
import { isSigned } from "./signature.ts"

const secret = "a secret of the payment provider"
const seconds = 1_700_000_000
const payload = '{"id":"pay_1","amount_idr":50000}'
const stripe = new Stripe("sk_test_unused")
const headerOf = (more: { readonly timestamp?: number; readonly secret?: string } = {}) =>
  stripe.webhooks.generateTestHeaderString({ payload, secret, timestamp: seconds, ...more })
const check = (header: string, body = payload, nowMs = seconds * 1000) =>
  isSigned(header, Buffer.from(body), secret, nowMs)

describe("a signature", () => {
  it("of Stripe's library is right", () => expect(check(headerOf())).toBe(true))

  it("may be one of two, while a secret is replaced", () => {
    const other = headerOf({ secret: "the next secret" })
    expect(check(other)).toBe(false)
    expect(check(`${other},${headerOf().split(",")[1]}`)).toBe(true)
  })

  it.each([
    ["nothing", ""],
    ["no time", headerOf().replace(/^t=\d+,/, "")],
    ["another time", headerOf().replace(/^t=\d+/, `t=${seconds - 1}`)],
    ["a time that is no number", headerOf().replace(/^t=\d+/, "t=1e9")],
    ["no signature", `t=${seconds}`],
    ["half a signature", headerOf().slice(0, -32)],
    ["another scheme", headerOf().replace("v1=", "v0=")],
  ])("is not %s", (_, header) => expect(check(header)).toBe(false))

  it("covers every byte of the body", () =>
    expect(check(headerOf(), payload.replace("50000", "90000"))).toBe(false))

  it("is too old, or from the future, after five minutes", () => {
    for (const off of [-301, 301])
      expect(check(headerOf(), payload, (seconds + off) * 1000)).toBe(false)
    for (const off of [-300, 300])
      expect(check(headerOf(), payload, (seconds + off) * 1000)).toBe(true)
  })
})
