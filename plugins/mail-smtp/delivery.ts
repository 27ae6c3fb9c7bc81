import { Data, type Effect } from "effect"
import type { Outgoing } from "./message.ts"

/**
 * `reason` is logged, so it quotes neither the mail nor a server's reply, which may quote the mail.
 */
export class DeliveryFailed extends Data.TaggedError("DeliveryFailed")<{
  readonly reason: string
  readonly isPermanent: boolean
}> {}

/** Delivers mails to an SMTP server or a folder, or drops them. */
export interface Delivery {
  deliver(mail: Outgoing): Effect.Effect<"delivered" | "written" | "dropped", DeliveryFailed>
}
