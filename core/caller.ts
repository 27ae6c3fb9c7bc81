import type { Micros } from "./money.ts"

/** Part of every row, blob key and cache key. Test keys have a sandbox of their own. */
export interface Tenant {
  readonly account: string
  readonly mode: "live" | "test"
}

export interface Limits {
  /** Requests in any 60 s. */
  readonly rpm: number
  /** Requests in a UTC day. */
  readonly rpd: number
  /** Requests in flight. */
  readonly concurrency: number
  /** Spend in a UTC month; 0 = no cap. */
  readonly monthlyCapMicros: Micros
  /**
   * The largest JSON body in MB (2^20 bytes), unpacked. The default is the largest of any endpoint.
   */
  readonly bodyMb: number
}

export const defaultLimits: Limits = {
  rpm: 60,
  rpd: 10_000,
  concurrency: 10,
  monthlyCapMicros: 1_000_000_000_000n,
  bodyMb: 50,
}

/** Who calls. `keyId` is absent for a dashboard session. */
export interface Caller {
  readonly tenant: Tenant
  readonly keyId?: string
  /** `*`, or ids of endpoints. */
  readonly scopes: readonly string[]
  readonly role: "user" | "admin"
  readonly limits: Limits
  /** Models that it may use; absent: all. */
  readonly models?: readonly string[]
  /**
   * Why it may read, and change nothing: the code of the refusal. `read_only_session`: an
   * administrator sees the account as its owner does.
   */
  readonly readOnly?: "account_suspended" | "read_only_session"
}

/** The client behind the connection, as HTTP headers describe it. */
export interface Client {
  /** An IP address; behind a trusted proxy the one that it names. */
  readonly address: string
  /** `Accept-Language`, as it came. */
  readonly languages?: string | undefined
  /** `User-Agent`, as it came. */
  readonly agent?: string | undefined
  /** `Svc-Signature`, as it came. */
  readonly signature?: string | undefined
}
