// A receipt is checked without asking anybody: node examples/clients/verify-receipt.js <call id>
// or, of files that were saved before: node examples/clients/verify-receipt.js receipt.json jwks.json
import { readFileSync } from "node:fs"
import { compactVerify, createLocalJWKSet } from "jose"
import { connection } from "./connection.js"

const fail = (message) => {
  console.error(message)
  process.exit(1)
}

/** A plain decimal -> a whole number of nano-rupiah. */
const nanos = (decimal) => {
  const [whole, fraction = ""] = decimal.split(".")
  return BigInt(whole + fraction.padEnd(9, "0"))
}

/** What the receipt's usage comes to at its prices, in micro-rupiah: exact, and rounded once, up. */
const costOf = ({ usage, prices }) => {
  let femtos = 0n
  for (const [model, used] of Object.entries(usage)) {
    const price = (what) => nanos(prices.models[model][what])
    const [read, write] = [BigInt(used.cacheReadTokens), BigInt(used.cacheWriteTokens)]
    femtos +=
      (BigInt(used.inputTokens) - read - write) * price("input") +
      read * price("cacheRead") +
      write * price("cacheWrite")
    femtos += BigInt(used.outputTokens) * price("output")
    femtos +=
      (BigInt(used.images) * price("image") + BigInt(used.searchUnits) * price("searchUnit")) *
      1_000_000n
  }
  const divisor = 1_000_000_000_000n
  return (femtos * BigInt(Math.round(prices.factor * 1000)) + divisor - 1n) / divisor
}

const micros = (rupiah) => nanos(rupiah) / 1000n

/** Throws when the signature is not that of a receipt by one of `keys`, or when the sum is wrong. */
const verifyReceipt = async ({ jws }, keys) => {
  const { payload, protectedHeader } = await compactVerify(jws, createLocalJWKSet(keys), {
    algorithms: ["EdDSA"],
  })
  if (protectedHeader.typ !== "receipt+jws")
    throw new Error(`this is no receipt, but ${protectedHeader.typ}`)
  const receipt = JSON.parse(new TextDecoder().decode(payload))
  const due = receipt.status === "settled" ? costOf(receipt) : 0n
  // the hold is the most that a call may cost
  const cost = micros(receipt.cost_idr)
  if (cost > due || cost > micros(receipt.hold_idr))
    throw new Error(
      `the receipt says Rp${receipt.cost_idr}, its usage comes to ${due} micro-rupiah`,
    )
  return { ...receipt, due }
}

const fetchBoth = async (callId) => {
  const { baseURL, apiKey } = connection()
  const get = async (url) => {
    const response = await fetch(url, { headers: { authorization: `Bearer ${apiKey}` } })
    if (!response.ok) fail((await response.json()).error.message)
    return response.json()
  }
  return [
    await get(`${baseURL}/receipts/${callId}`),
    await get(new URL("/.well-known/jwks.json", baseURL)),
  ]
}

const [first, keysFile] = process.argv.slice(2)
if (!first)
  fail(
    "Usage: node examples/clients/verify-receipt.js <call id>, which is the X-Call-ID of an answer",
  )
const [receipt, keys] = keysFile
  ? [first, keysFile].map((file) => JSON.parse(readFileSync(file, "utf8")))
  : await fetchBoth(first)
const { call_id, model, cost_idr, due, iss } = await verifyReceipt(receipt, keys)
console.log(
  `${iss} signed that ${call_id} (${model}) cost Rp${cost_idr}; ${micros(cost_idr) === due ? "the sum is right" : "its usage comes to more"}`,
)
