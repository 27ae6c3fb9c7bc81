import { createHmac, randomBytes } from "node:crypto"
import { Effect } from "effect"
import type { Json } from "../../core/json.ts"
import type { Signer } from "../../core/ports/signer.ts"

const encode = (value: Json): string => Buffer.from(JSON.stringify(value)).toString("base64url")

/**
 * Signs with an HMAC; tokens have three parts like a JWT. Each fake accepts only its own
 * signatures.
 */
export const fakeSigner = (): Signer => {
  const secret = randomBytes(32)
  const macOf = (text: string) => createHmac("sha256", secret).update(text).digest("base64url")
  return {
    sign: (purpose, payload) =>
      Effect.sync(() => {
        const signed = `${encode({ alg: "fake", purpose })}.${encode(payload)}`
        return `${signed}.${macOf(signed)}`
      }),
    verify: (purpose, jws) =>
      Effect.sync(() => {
        const [head, payload, mac, more] = jws.split(".")
        if (
          head !== encode({ alg: "fake", purpose }) ||
          payload === undefined ||
          more !== undefined ||
          mac !== macOf(`${head}.${payload}`)
        )
          return undefined
        return JSON.parse(Buffer.from(payload, "base64url").toString()) as Json
      }),
  }
}
