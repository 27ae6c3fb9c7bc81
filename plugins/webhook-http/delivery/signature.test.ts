import { Webhook as StandardWebhook } from "standardwebhooks"
import Stripe from "stripe"
import { describe, expect, it, vi } from "vitest"
import { headersOf, makeSecret } from "./signature.ts"

const { webhooks } = new Stripe("sk_test_nobody")
const seconds = 1_768_478_400
const body = JSON.stringify({
  event: "batch.completed",
  created: seconds,
  data: { id: "batch-1", note: 'é\u2028"' },
})
const [current, old, stranger] = [makeSecret(), makeSecret(), makeSecret()]
const signed = { id: "whd-1", event: "batch.completed", body, seconds, secrets: [current, old] }
const header = headersOf("svc", signed)["Svc-Signature"] ?? ""
const verify = (text: string, secret: string, atSeconds = seconds) =>
  webhooks.constructEvent(text, header, secret, 300, undefined, atSeconds * 1000)

it("a secret is whsec_ and 32 letters and digits", () =>
  expect(current).toMatch(/^whsec_[A-Za-z0-9]{32}$/))

it("stripe's verifier takes it under the new and the old secret, and under no other", () => {
  expect(header).toMatch(/^t=1768478400,v1=[0-9a-f]{64},v1=[0-9a-f]{64}$/)
  for (const secret of [current, old])
    expect(verify(body, secret)).toMatchObject({ event: "batch.completed" })
  expect(() => verify(body, stranger)).toThrow(/signature/i)
})

it("stripe's verifier refuses a body changed by any one byte", () => {
  for (let at = 0; at < body.length; at++)
    expect(
      () =>
        verify(
          body.slice(0, at) + String.fromCharCode(body.charCodeAt(at) ^ 1) + body.slice(at + 1),
          current,
        ),
      `byte ${at}`,
    ).toThrow()
})

it("stripe's verifier takes a time 300 s old and refuses one 301 s old", () => {
  expect(verify(body, current, seconds + 300)).toBeDefined()
  expect(() => verify(body, current, seconds + 301)).toThrow(/timestamp/i)
})

describe("Standard Webhooks", () => {
  const headers = headersOf("standard", signed)
  const check = (text: string, secret: string, atSeconds = seconds) => {
    vi.useFakeTimers({ now: atSeconds * 1000, toFake: ["Date"] })
    try {
      return new StandardWebhook(secret).verify(text, headers)
    } finally {
      vi.useRealTimers()
    }
  }

  it("its own verifier takes it under the new and the old secret, and under no other", () => {
    expect(headers).toMatchObject({
      "webhook-id": "whd-1",
      "webhook-timestamp": String(seconds),
      "Svc-Event": "batch.completed",
    })
    for (const secret of [current, old])
      expect(check(body, secret)).toMatchObject({ event: "batch.completed" })
    expect(() => check(body, stranger)).toThrow(/signature/i)
  })

  it("its own verifier refuses a changed body, and a time 301 s old", () => {
    expect(() => check(body.replace("batch-1", "batch-2"), current)).toThrow(/signature/i)
    expect(check(body, current, seconds + 300)).toBeDefined()
    expect(() => check(body, current, seconds + 301)).toThrow(/timestamp/i)
  })
})
