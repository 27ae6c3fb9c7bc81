import { Data, type Effect } from "effect"
import type { Strings } from "../json.ts"

export interface OutboundRequest {
  readonly method: "GET" | "POST"
  readonly url: string
  readonly headers?: Strings
  readonly body?: string | Uint8Array
  /** From the DNS lookup to the last byte. */
  readonly timeoutMs: number
  /** Bytes beyond this are not read. */
  readonly maxBytes: number
}

export interface OutboundReply {
  readonly status: number
  readonly headers: Strings
  readonly body: Uint8Array
  /** The body was longer than `maxBytes`. */
  readonly truncated: boolean
}

/** The address must not be called. The reason may be shown to the customer who named it. */
export class OutboundRefused extends Data.TaggedError("OutboundRefused")<{
  readonly message: string
}> {}
/** The host did not answer in time. */
export class OutboundFailed extends Data.TaggedError("OutboundFailed")<{
  readonly message: string
}> {}

/**
 * The one way to a URL that a customer gave: https only, to public addresses and ports 443 and 80
 * (or allowed ones) only, checked on the connection itself; redirects are not followed.
 */
export interface Outbound {
  /** Checks a URL without network access. Returns why it is refused, or undefined. */
  refusal(url: string): string | undefined
  send(request: OutboundRequest): Effect.Effect<OutboundReply, OutboundRefused | OutboundFailed>
}
