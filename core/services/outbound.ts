import { Data, type Effect } from "effect"
import type { Strings } from "../json.ts"

export interface OutboundRequest {
  readonly method: "GET" | "POST"
  readonly url: string
  readonly headers?: Strings
  readonly body?: string | Uint8Array
  /** From the name's look-up to the last byte. */
  readonly timeoutMs: number
  /** What is more is not read. */
  readonly maxBytes: number
}

export interface OutboundReply {
  readonly status: number
  readonly headers: Strings
  readonly body: Uint8Array
  /** The body was longer than `maxBytes`. */
  readonly truncated: boolean
}

/** The address must not be called: the reason is fit for the customer who named it. */
export class OutboundRefused extends Data.TaggedError("OutboundRefused")<{
  readonly message: string
}> {}
/** Nobody answered, or not in time. */
export class OutboundFailed extends Data.TaggedError("OutboundFailed")<{
  readonly message: string
}> {}

/** The one way to a URL that a customer gave: https only, to public addresses only, checked on the connection itself; redirects are not followed. */
export interface Outbound {
  /** What can be said of a URL without asking the network: why it is refused, or undefined. */
  refusal(url: string): string | undefined
  send(request: OutboundRequest): Effect.Effect<OutboundReply, OutboundRefused | OutboundFailed>
}
