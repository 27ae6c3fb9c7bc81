import type { Effect } from "effect"
import type { PortError } from "../errors.ts"
import type { Json } from "../json.ts"

/** What a signature is for; one of another purpose is none. */
export type SigningPurpose = "session" | "receipt"

/** Compact JSON Web Signatures (RFC 7515) with Ed25519 (RFC 8037). Keys lie in the database and rotate; the public ones are at `/.well-known/jwks.json`. */
export interface Signer {
  sign(purpose: SigningPurpose, payload: Json): Effect.Effect<string, PortError>
  /** The payload, or undefined when the signature is not ours. The times in it are for the caller to check. */
  verify(purpose: SigningPurpose, jws: string): Effect.Effect<Json | undefined, PortError>
}
