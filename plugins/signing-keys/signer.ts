import { Effect } from "effect"
import { CompactSign, compactVerify } from "jose"
import { PortError, type Signer } from "../../core/index.ts"
import { headerOf, maxCharacters, readCompactJws } from "./compact-jws.ts"
import { algorithm } from "./key-pair.ts"
import type { KeyRing } from "./key-ring.ts"

const failure = (message: string, cause?: unknown) =>
  new PortError({ port: "signer", message, cause })

export const makeSigner = (ring: KeyRing): Signer => ({
  sign: (purpose, payload) =>
    Effect.gen(function* () {
      const text = JSON.stringify(payload)
      if (text === undefined) return yield* failure("the payload is not JSON")
      const { kid, signKey } = yield* ring.current(purpose)
      const signing = new CompactSign(new TextEncoder().encode(text)).setProtectedHeader(
        headerOf(purpose, kid),
      )
      const jws = yield* Effect.tryPromise({
        try: () => signing.sign(signKey),
        catch: (cause) => failure("the payload could not be signed", cause),
      })
      if (jws.length > maxCharacters)
        return yield* failure(
          `the payload is too large: a signature may have ${maxCharacters} characters`,
        )
      return jws
    }),
  verify: (purpose, jws) =>
    Effect.gen(function* () {
      const read = readCompactJws(jws, purpose)
      const key = read && (yield* ring.find(read.kid))
      if (!key || key.purpose !== purpose) return undefined
      return yield* Effect.tryPromise(() =>
        compactVerify(jws, key.verifyKey, { algorithms: [algorithm] }),
      ).pipe(
        Effect.map(() => read.payload),
        Effect.catch(() => Effect.succeed(undefined)),
      )
    }),
})
