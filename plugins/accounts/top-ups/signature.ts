import { createHmac, timingSafeEqual } from "node:crypto"

/** A message that was overheard is of no use after this. */
const toleranceSeconds = 300

/** The parts of `t=<unix seconds>,v1=<hex>[,v1=<hex>]`; two signatures while a secret is replaced. */
const partsOf = (header: string) => {
  const parts = header.split(",").map((part) => part.trim().split("=", 2))
  const valuesOf = (name: string) =>
    parts.flatMap(([key, value]) => (key === name && value !== undefined ? [value] : []))
  return { seconds: valuesOf("t")[0] ?? "", signatures: valuesOf("v1") }
}

const isEqual = (a: Buffer, b: Buffer) => a.length === b.length && timingSafeEqual(a, b)

/**
 * Whether the body was signed with the secret within the last 5 minutes. The form is that of this
 * server's own webhooks, and of Stripe's: HMAC-SHA256 of `<t>.<body>`, in hex.
 */
export const isSigned = (
  header: string,
  body: Uint8Array,
  secret: string,
  nowMs: number,
): boolean => {
  const { seconds, signatures } = partsOf(header)
  if (!/^\d{1,12}$/.test(seconds)) return false
  if (Math.abs(nowMs / 1000 - Number(seconds)) > toleranceSeconds) return false
  const expected = createHmac("sha256", secret).update(`${seconds}.`).update(body).digest()
  return signatures.some((hex) => isEqual(Buffer.from(hex, "hex"), expected))
}
