import type { Tenant } from "../../core/index.ts"

export interface RunningAttempts {
  add(tenant: Tenant, key: string, attempt: string): void
  /** Removes and returns the newest attempt of this replica with the key. */
  take(tenant: Tenant, key: string): string | undefined
}

/**
 * More requests than a server has in flight. Beyond it the oldest is dropped: its reply is not
 * stored, and its key is free when its lease ends.
 */
const maxAttempts = 100_000

/** The attempts of this replica by key, as `finish` and `forget` are called with the key only. */
export const makeRunningAttempts = (max = maxAttempts): RunningAttempts => {
  const attempts = new Map<string, string>()
  const idOf = ({ account, mode }: Tenant, key: string) => JSON.stringify([account, mode, key])
  return {
    add: (tenant, key, attempt) => {
      const id = idOf(tenant, key)
      attempts.delete(id)
      attempts.set(id, attempt)
      const [oldest] = attempts.keys()
      if (attempts.size > max && oldest !== undefined) attempts.delete(oldest)
    },
    take: (tenant, key) => {
      const id = idOf(tenant, key)
      const attempt = attempts.get(id)
      attempts.delete(id)
      return attempt
    },
  }
}
