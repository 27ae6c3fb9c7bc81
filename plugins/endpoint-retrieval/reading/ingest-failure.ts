import { Data } from "effect"
import type { ReadFailureCode } from "../extract/kind.ts"

/** The file's own fault: trying again does not help. The message is for the customer. */
export class IngestFailure extends Data.TaggedError("IngestFailure")<{
  readonly code: ReadFailureCode | "insufficient_quota" | "not_permitted" | "internal"
  readonly message: string
}> {}
