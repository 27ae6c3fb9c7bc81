import { generateKeyPairSync, sign } from "node:crypto"
import { expect, it } from "vitest"
import { webModule } from "./testing/web-module.ts"

const { readJws, verifyReceipt } = await webModule("verify-receipt.js")

const { publicKey, privateKey } = generateKeyPairSync("ed25519")
const jwks = { keys: [{ ...publicKey.export({ format: "jwk" }), kid: "k1", use: "sig" }] }
const base64url = (text: string | Buffer) => Buffer.from(text).toString("base64url")
const receipt = { call_id: "c", note: "Rp 2,5 – café", cost_idr: "0.0240" }
const jwsOf = (payload: object, kid = "k1") => {
  const signed = [{ alg: "EdDSA", kid }, payload].map((part) => base64url(JSON.stringify(part)))
  const signature = sign(null, Buffer.from(signed.join(".")), privateKey)
  return [...signed, base64url(signature)].join(".")
}

it("a receipt's signature is right, wrong where a byte differs, or of nobody here", async () => {
  const jws = jwsOf(receipt)
  expect(readJws(jws)).toMatchObject({ header: { kid: "k1" }, payload: receipt })
  expect(await verifyReceipt(jws, jwks)).toBe("right")
  const [head, , signature] = jws.split(".")
  const other = base64url(JSON.stringify({ ...receipt, cost_idr: "0.0140" }))
  expect(await verifyReceipt(`${head}.${other}.${signature}`, jwks)).toBe("wrong")
  expect(await verifyReceipt(jwsOf(receipt, "k2"), jwks)).toBe("unknown")
})

it("a browser without Ed25519, or without HTTPS, says that it can't check", async () => {
  const importKey = () => Promise.reject(new DOMException("no", "NotSupportedError"))
  expect(await verifyReceipt(jwsOf(receipt), jwks, { importKey })).toBe("unable")
  expect(await verifyReceipt(jwsOf(receipt), jwks, null)).toBe("unable")
})
