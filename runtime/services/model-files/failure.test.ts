import { expect, it } from "vitest"
import { networkFailure } from "./failure.ts"

const thrown = (code: string) =>
  new TypeError("fetch failed", { cause: Object.assign(new Error(`what ${code} says`), { code }) })

it.each([
  "SELF_SIGNED_CERT_IN_CHAIN",
  "DEPTH_ZERO_SELF_SIGNED_CERT",
  "UNABLE_TO_GET_ISSUER_CERT_LOCALLY",
  "UNABLE_TO_VERIFY_LEAF_SIGNATURE",
])("%s: who is behind a proxy that signs for others reads what to set", (code) => {
  const failure = networkFailure(thrown(code), "https://pypi.example/simple/")
  expect(failure.message).toContain(`pypi.example: what ${code} says`)
  expect(failure.message).toContain("NODE_EXTRA_CA_CERTS")
  expect(failure.retry).toBe(false)
})

it("does not blame a proxy for anything else", () => {
  for (const code of [
    "CERT_HAS_EXPIRED",
    "ERR_TLS_CERT_ALTNAME_INVALID",
    "ENOTFOUND",
    "ECONNRESET",
  ])
    expect(networkFailure(thrown(code), "https://pypi.example/").message).not.toContain(
      "NODE_EXTRA_CA_CERTS",
    )
})
