import type { Tenant } from "../../core/index.ts"

export interface HeldKey {
  readonly account: string
  readonly mode: Tenant["mode"]
  readonly key: string
  readonly attempt: string
}

export interface RunningAttempts {
  add(tenant: Tenant, key: string, attempt: string): void
  /** Removes and returns the newest attempt of this replica with the key. */
  take(tenant: Tenant, key: string): string | undefined
  all(): readonly HeldKey[]
}

/**
 * More requests than a server has in flight. Beyond it the oldest is dropped: its reply is not
 * stored, and its key is free when its lease ends.
 */
const maxAttempts = 100_000

/** The attempts of this replica by key, as `finish` and `forget` are called with the key only. */
export const makeRunningAttempts = (max = maxAttempts): RunningAttempts => {
  const attempts = new Map<string, HeldKey>()
  const idOf = ({ account, mode }: Tenant, key: string) => JSON.stringify([account, mode, key])
  return {
    add: (tenant, key, attempt) => {
      const id = idOf(tenant, key)
      attempts.delete(id)
      attempts.set(id, { account: tenant.account, mode: tenant.mode, key, attempt })
      const [oldest] = attempts.keys()
      if (attempts.size > max && oldest !== undefined) attempts.delete(oldest)
    },
    take: (tenant, key) => {
      const id = idOf(tenant, key)
      const held = attempts.get(id)
      attempts.delete(id)
      return held?.attempt
    },
    all: () => [...attempts.values()],
  }
}
