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

const modelPollMs = 500

/**
 * Waits until the model is open. Where it can't be opened, only the operator can help, and the file
 * has time until its deadline: to read it now would be in vain.
 */
export const modelIsOpen = (
  deps: Pick<IngestDeps, "catalogue" | "clock" | "settings">,
  row: Pick<DocumentRow, "created_at">,
): Effect.Effect<void, IngestFailure> =>
  Effect.catchTag(
    Effect.asVoid(deps.catalogue.open("embed", deps.settings.model)),
    "ApiError",
    () =>
      checkDeadline(deps, row).pipe(
        Effect.andThen(Effect.sleep(modelPollMs)),
        Effect.andThen(Effect.suspend(() => modelIsOpen(deps, row))),
      ),
  )
