import type { Effect } from "effect"
import type { Caller } from "../caller.ts"
import type { ApiError, PortError } from "../errors.ts"

export interface Identity {
  /**
   * Authenticates a key. Fails with 401 `authentication_error`, 403 `email_not_verified` or
   * `account_suspended`. Cached for at most 5 s.
   */
  authenticate(bearer: string): Effect.Effect<Caller, ApiError | PortError>
  /** Resolves a key that batch lines or ingest act for later. */
  resume(keyId: string): Effect.Effect<Caller, ApiError | PortError>
  /** Records that a caller without the role requested an admin endpoint. */
  denied?(caller: Caller, endpoint: string): Effect.Effect<void, PortError>
}

export interface IssuedKey {
  readonly id: string
  /** Shown once; only its SHA-256 is stored. */
  readonly key: string
  readonly name: string
  readonly account: string
}

/** A key without its secret. */
export interface ListedKey {
  readonly id: string
  readonly name: string
  /** First characters of the key. */
  readonly prefix: string
  readonly account: string
  readonly test: boolean
  readonly scopes: readonly string[]
  readonly createdMs: number
  readonly lastUsedMs: number | undefined
  readonly revokedMs: number | undefined
}

/** Behind `rakit keys`. Without an e-mail: the first account. */
export interface KeyIssuer {
  issue(request: {
    readonly email?: string
    readonly name: string
    readonly test: boolean
    readonly scopes?: readonly string[]
  }): Effect.Effect<IssuedKey, ApiError | PortError>
  /** Newest first, at most 1,000. */
  list(request: {
    readonly email?: string
  }): Effect.Effect<readonly ListedKey[], ApiError | PortError>
  /** Idempotent. Running servers notice within 5 s. */
  revoke(id: string): Effect.Effect<ListedKey, ApiError | PortError>
}

/** The account that the first boot made; secrets are present only in the process that made it. */
export interface FirstAccount {
  readonly created:
    | { readonly email: string; readonly password: string; readonly apiKey: string }
    | undefined
}
