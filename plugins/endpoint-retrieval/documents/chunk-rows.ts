import { Effect } from "effect"
import { sql } from "kysely"
import type { PortError, Tenant, Transaction, Workers } from "../../../core/index.ts"
import type { RetrievalDeps } from "../deps.ts"
import type { ChunkRow, RetrievalTables } from "../tables.ts"
import type { WordsInput } from "./words-job.ts"

type Deps = Pick<RetrievalDeps, "database">

export type NewChunk = Omit<ChunkRow, "document_no">

/** PostgreSQL's text can't hold NUL; another character in its place keeps the offsets. */
const storable = (text: string): string => text.replaceAll("\0", "\u{fffd}")

const isSource = import.meta.url.endsWith(".ts")
const wordsJob = new URL(isSource ? "./words-job.ts" : "./words-job.js", import.meta.url)

/** Chunks as they are stored, with the lexemes of their texts. */
export const withWords = (
  workers: Workers,
  tenant: Tenant,
  chunks: readonly Omit<NewChunk, "words">[],
): Effect.Effect<readonly NewChunk[], PortError> =>
  Effect.gen(function* () {
    if (chunks.length === 0) return []
    const texts = chunks.map(({ text }) => storable(text))
    const input: WordsInput = { tenant, texts }
    const words = yield* workers.run<WordsInput, readonly string[]>(wordsJob, input)
    return chunks.map((chunk, n) => ({ ...chunk, text: texts[n]!, words: words[n]! }))
  })

export const insertChunks = (
  { database }: Deps,
  document: bigint,
  chunks: readonly NewChunk[],
  tx: Transaction,
): Effect.Effect<void, PortError> => {
  if (chunks.length === 0) return Effect.void
  const rows = chunks.map((chunk) => ({ ...chunk, document_no: document }))
  return Effect.asVoid(
    database.run(() =>
      database.queries<RetrievalTables>(tx).insertInto("retrieval_chunk").values(rows).execute(),
    ),
  )
}

/** The texts of these chunks, in order of their indices. */
export const textsOf = (
  { database }: Deps,
  document: bigint,
  indices: readonly number[],
): Effect.Effect<readonly string[], PortError> =>
  Effect.map(
    database.run(() =>
      database
        .queries<RetrievalTables>()
        .selectFrom("retrieval_chunk")
        .select("text")
        .where("document_no", "=", document)
        .where(({ eb, ref }) => sql<boolean>`${ref("idx")} = ANY(${eb.val([...indices])}::int[])`)
        .orderBy("idx")
        .execute(),
    ),
    (rows) => rows.map(({ text }) => text),
  )

export const deleteChunks = (
  { database }: Deps,
  document: bigint,
  tx: Transaction,
): Effect.Effect<void, PortError> =>
  Effect.asVoid(
    database.run(() =>
      database
        .queries<RetrievalTables>(tx)
        .deleteFrom("retrieval_chunk")
        .where("document_no", "=", document)
        .execute(),
    ),
  )
