import type { CryptoKey } from "jose"
import type { Secrets, SigningPurpose } from "../../core/index.ts"
import { importPrivate, importPublic, type PublicJwk } from "./key-pair.ts"
import type { KeyRow } from "./key-rows.ts"

/** An imported key. */
export interface RingKey {
  readonly kid: string
  readonly purpose: SigningPurpose
  readonly publicJwk: PublicJwk
  readonly verifyKey: CryptoKey
  /** Undefined when this replica can't decrypt it, or the key has retired. */
  readonly signKey: CryptoKey | undefined
  readonly retiresMs: number
  readonly acceptedUntilMs: number
}
export type SigningKey = RingKey & { readonly signKey: CryptoKey }

/**
 * Returns the private half; undefined when this replica can't decrypt it, or the key has retired.
 */
export const decryptPrivate = (row: KeyRow, secrets: Secrets, nowMs: number): string | undefined =>
  row.private_jwk !== null && row.sealed_by === secrets.keyId && row.retires_at.getTime() > nowMs
    ? secrets.decrypt(row.private_jwk)
    : undefined

/** `known` is the same key from an earlier load, so that nothing is imported twice. */
export const toRingKey = async (
  row: KeyRow,
  privateJwk: string | undefined,
  known: RingKey | undefined,
): Promise<RingKey> => ({
  kid: row.kid,
  purpose: row.purpose,
  publicJwk: row.public_jwk,
  verifyKey: known?.verifyKey ?? (await importPublic(row.public_jwk)),
  signKey:
    privateJwk === undefined ? undefined : (known?.signKey ?? (await importPrivate(privateJwk))),
  retiresMs: row.retires_at.getTime(),
  acceptedUntilMs: row.accepted_until?.getTime() ?? Number.POSITIVE_INFINITY,
})
