import { Data, type Stream } from "effect"
import type { PortError } from "../../../core/index.ts"
import type { Kind, ReadBatch, ReadFailureCode } from "../extract/kind.ts"

/** The file's own fault: trying again does not help. The message is for the customer. */
export class IngestFailure extends Data.TaggedError("IngestFailure")<{
  readonly code: ReadFailureCode | "insufficient_quota" | "not_permitted" | "internal"
  readonly message: string
}> {}

export interface DocumentReader {
  /**
   * The chunks of a file, in batches of some dozens, the last one with all counts. The next batch
   * is read when the last was taken, so memory is bounded whatever the file is. A stream without
   * chunks never succeeds: it fails as `empty` or `no_text`.
   */
  read(
    kind: Kind,
    bytes: Stream.Stream<Uint8Array, PortError>,
  ): Stream.Stream<ReadBatch, IngestFailure | PortError>
}
