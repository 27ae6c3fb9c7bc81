import { Effect, Schema } from "effect"
import { defineEndpoint, type WhenStarted } from "../../core/index.ts"
import { algorithm } from "./key-pair.ts"
import type { KeyRing } from "./key-ring.ts"
import type { RingKey } from "./ring-key.ts"

const Jwks = Schema.Struct({
  keys: Schema.Array(
    Schema.Struct({
      kty: Schema.Literal("OKP"),
      crv: Schema.Literal("Ed25519"),
      x: Schema.String,
      kid: Schema.String,
      alg: Schema.Literal(algorithm),
      use: Schema.Literal("sig"),
    }),
  ),
}).annotate({ identifier: "Jwks", description: "A JSON Web Key Set (RFC 7517)." })

const toJwk = ({ kid, publicJwk: { kty, crv, x } }: RingKey) => ({
  kty,
  crv,
  x,
  kid,
  alg: algorithm,
  use: "sig",
})

const headers = { "cache-control": "public, max-age=300" }

export const makeJwksEndpoint = (started: WhenStarted<KeyRing>) =>
  defineEndpoint({
    id: "signing-keys.jwks",
    summary: "The public keys that verify receipts, offline too.",
    method: "GET",
    path: "/.well-known/jwks.json",
    access: "public",
    body: "none",
    maxBodyBytes: 0,
    reply: Jwks,
    plan: () =>
      Effect.map(started, (ring) => ({
        bound: {},
        run: Effect.map(ring.published, (keys) => ({
          status: 200,
          headers,
          json: { keys: keys.map(toJwk) },
        })),
      })),
  })
