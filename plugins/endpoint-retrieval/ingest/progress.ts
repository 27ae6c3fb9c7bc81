import { Effect } from "effect"
import type { FileMark, Json, PortError, Transaction } from "../../../core/index.ts"
import { Superseded, tenantOf } from "../documents/claim.ts"
import type { DocumentRow } from "../tables.ts"
import type { IngestDeps } from "./ingest-deps.ts"

type Counts = Pick<DocumentRow, "pages" | "chunks" | "tokens">

/** Counts that stay in the file object when ingest has ended. */
export const countsOf = ({ pages, chunks, tokens }: Counts): Readonly<Record<string, Json>> => ({
  ...(pages !== null && { pages }),
  chunks,
  tokens: Number(tokens),
})

export const progressOf = (
  stage: "extracting" | "embedding",
  row: Counts & Pick<DocumentRow, "embedded">,
): Json => ({ stage, ...countsOf(row), chunks_embedded: row.embedded })

/**
 * Shows the state in the file object. It locks the file's row, which a deletion locks first, too,
 * so it is the first statement of a transaction.
 */
export const markFile = (
  { files }: Pick<IngestDeps, "files">,
  row: Pick<DocumentRow, "file_id" | "account" | "mode">,
  mark: FileMark,
  tx: Transaction,
): Effect.Effect<void, PortError | Superseded> =>
  Effect.flatMap(files.mark(tenantOf(row), row.file_id, mark, tx), (isThere) =>
    isThere ? Effect.void : Effect.fail(new Superseded()),
  )
