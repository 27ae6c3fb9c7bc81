import type { CryptoKey } from "jose"
import type { Secrets, SigningPurpose } from "../../core/index.ts"
import { importPrivate, importPublic, type PublicJwk } from "./key-pair.ts"
import type { KeyRow } from "./key-rows.ts"

/** A key in memory. */
export interface RingKey {
  readonly kid: string
  readonly purpose: SigningPurpose
  readonly publicJwk: PublicJwk
  readonly verifyKey: CryptoKey
  /** Only where this replica can open it, and it has not retired. */
  readonly signKey: CryptoKey | undefined
  readonly retiresMs: number
  readonly acceptedUntilMs: number
}
export type SigningKey = RingKey & { readonly signKey: CryptoKey }

/** The private half, where this replica can open it and it still signs. */
export const openPrivate = (row: KeyRow, secrets: Secrets, nowMs: number): string | undefined =>
  row.private_jwk !== null && row.sealed_by === secrets.keyId && row.retires_at.getTime() > nowMs
    ? secrets.decrypt(row.private_jwk)
    : undefined

/** `known`: the same key as it was read before, so that nothing is imported twice. */
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
