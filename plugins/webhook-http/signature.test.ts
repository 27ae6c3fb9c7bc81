import { createHmac } from "node:crypto"
import Stripe from "stripe"
import { expect, it } from "vitest"
import { headersOf, makeSecret } from "./signature.ts"

const { webhooks } = new Stripe("sk_test_nobody")
const seconds = 1_768_478_400
const body = JSON.stringify({ event: "batch.completed", created: seconds, data: { id: "batch-1", note: 'é\u2028"' } })
const [current, old, stranger] = [makeSecret(), makeSecret(), makeSecret()]
const signed = { id: "whd-1", event: "batch.completed", body, seconds, secrets: [current, old] }
const header = headersOf("svc", signed)["Svc-Signature"] ?? ""
const verify = (text: string, secret: string, atSeconds = seconds) => webhooks.constructEvent(text, header, secret, 300, undefined, atSeconds * 1000)

it("a secret is whsec_ and 32 letters and digits", () => expect(current).toMatch(/^whsec_[A-Za-z0-9]{32}$/))

it("stripe's verifier takes it under the new and the old secret, and under no other", () => {
  expect(header).toMatch(/^t=1768478400,v1=[0-9a-f]{64},v1=[0-9a-f]{64}$/)
  for (const secret of [current, old]) expect(verify(body, secret)).toMatchObject({ event: "batch.completed" })
  expect(() => verify(body, stranger)).toThrow(/signature/i)
})

it("stripe's verifier refuses a body changed by any one byte", () => {
  for (let at = 0; at < body.length; at++)
    expect(() => verify(body.slice(0, at) + String.fromCharCode(body.charCodeAt(at) ^ 1) + body.slice(at + 1), current), `byte ${at}`).toThrow()
})

it("stripe's verifier takes a time 300 s old and refuses one 301 s old", () => {
  expect(verify(body, current, seconds + 300)).toBeDefined()
  expect(() => verify(body, current, seconds + 301)).toThrow(/timestamp/i)
})

it("Standard Webhooks: the key is the base64 behind whsec_, the text id.timestamp.body", () => {
  const headers = headersOf("standard", signed)
  const expected = [current, old].map(
    (secret) =>
      `v1,${createHmac("sha256", Buffer.from(secret.slice(6), "base64"))
        .update(`whd-1.${seconds}.${body}`)
        .digest("base64")}`,
  )
  expect(headers).toEqual({
    ...{ "Content-Type": "application/json", "User-Agent": "Svc-Webhooks/1.0", "Svc-Event": "batch.completed" },
    ...{ "webhook-id": "whd-1", "webhook-timestamp": String(seconds), "webhook-signature": expected.join(" ") },
  })
})
