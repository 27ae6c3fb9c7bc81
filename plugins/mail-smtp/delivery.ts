import { Data, type Effect } from "effect"
import type { Outgoing } from "./message.ts"

/** `reason` goes into the log: it never quotes the mail, nor a server that might. */
export class DeliveryFailed extends Data.TaggedError("DeliveryFailed")<{
  readonly reason: string
  readonly isPermanent: boolean
}> {}

/** Where mails go: a server, a folder, or nowhere. */
export interface Delivery {
  deliver(mail: Outgoing): Effect.Effect<"delivered" | "written" | "dropped", DeliveryFailed>
}
