import { Effect } from "effect"
import type { IngestFailure } from "../reading/document-reader.ts"
import type { DocumentRow } from "../tables.ts"
import { tooSlow } from "./failure.ts"
import type { IngestDeps } from "./ingest-deps.ts"

const hourMs = 3_600_000

/** A file that is not ready by then fails. */
export const checkDeadline = (
  { clock, settings: { ingestHours } }: Pick<IngestDeps, "clock" | "settings">,
  { created_at }: Pick<DocumentRow, "created_at">,
): Effect.Effect<void, IngestFailure> =>
  clock.nowMs() < created_at.getTime() + ingestHours * hourMs
    ? Effect.void
    : Effect.fail(tooSlow(ingestHours))
