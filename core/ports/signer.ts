import type { Effect } from "effect"
import type { PortError } from "../errors.ts"
import type { Json } from "../json.ts"

/** The purpose of a signature; verification fails for another purpose. */
export type SigningPurpose = "session" | "receipt"

/**
 * Compact JSON Web Signatures (RFC 7515) with Ed25519 (RFC 8037). Keys are stored in the database
 * and rotate; the public ones are at `/.well-known/jwks.json`.
 */
export interface Signer {
  sign(purpose: SigningPurpose, payload: Json): Effect.Effect<string, PortError>
  /**
   * Returns the payload, or undefined for an invalid signature. The caller checks the times in it.
   */
  verify(purpose: SigningPurpose, jws: string): Effect.Effect<Json | undefined, PortError>
}
