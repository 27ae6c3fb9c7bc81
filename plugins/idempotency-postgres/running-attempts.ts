import type { Tenant } from "../../core/index.ts"

export interface RunningAttempts {
  add(tenant: Tenant, key: string, attempt: string): void
  /** The attempt that this replica began last with the key, once. */
  take(tenant: Tenant, key: string): string | undefined
}

/** More requests than a server has in flight; beyond, the oldest is forgotten: its reply is not remembered, and its key is free when its lease ends. */
const maxAttempts = 100_000

/** Which attempt a request of this replica is: `finish` and `forget` only know the key. */
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
