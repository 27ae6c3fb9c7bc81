import { Effect, Stream } from "effect"
import { type ApiError, PortError, type StoredFile } from "../../../core/index.ts"
import { deleteChunks, insertChunks, withWords } from "../documents/chunk-rows.ts"
import { type Superseded, tenantOf, updateClaimed } from "../documents/claim.ts"
import { type Kind, kindOf, type ReadBatch } from "../extract/kind.ts"
import { IngestFailure } from "../reading/document-reader.ts"
import type { DocumentRow } from "../tables.ts"
import { countTokens } from "./embed-texts.ts"
import type { IngestDeps } from "./ingest-deps.ts"
import { markFile, progressOf } from "./progress.ts"

/** Begins from the start: what an earlier run has left of the file is deleted. */
const beginReading = (deps: IngestDeps, row: DocumentRow) =>
  deps.database.transaction((tx) =>
    Effect.gen(function* () {
      const zeros = { pages: null, characters: 0n, chunks: 0, embedded: 0, tokens: 0n }
      const set = { ...zeros, state: "extracting" as const, space: null, dimensions: null }
      const progress = progressOf("extracting", zeros)
      yield* markFile(deps, row, { status: "processing", progress }, tx)
      const begun = yield* updateClaimed(deps, row, row.state, set, tx)
      yield* deps.vectors.remove(row.no, tx)
      yield* deleteChunks(deps, row.no, tx)
      return begun
    }),
  )

const tooManyChunks = (chunks: number): IngestFailure =>
  new IngestFailure({
    code: "too_large",
    message: `The text of the file is too long: it has more than ${chunks} sections. Upload it in parts.`,
  })

/** Stores a batch of chunks with the counts so far. Returns the row as it is then. */
const storeBatch = (deps: IngestDeps, row: DocumentRow, batch: ReadBatch) =>
  Effect.gen(function* () {
    const { chunks, pages = null, characters } = batch
    const most = deps.settings.maxChunksPerFile
    if (row.chunks + chunks.length > most) return yield* tooManyChunks(most)
    const tenant = tenantOf(row)
    const texts = chunks.map(({ text }) => text)
    const tokens = yield* countTokens(deps, tenant, texts)
    const rows = yield* withWords(
      deps.workers,
      tenant,
      chunks.map(({ index, text, page = null, start, end }) => ({
        idx: index,
        page,
        start_at: start,
        end_at: end,
        text,
      })),
    )
    const counts = {
      pages,
      characters: BigInt(characters),
      chunks: row.chunks + chunks.length,
      tokens: row.tokens + BigInt(tokens),
    }
    const progress = progressOf("extracting", { ...counts, embedded: 0 })
    return yield* deps.database.transaction((tx) =>
      Effect.gen(function* () {
        yield* markFile(deps, row, { status: "processing", progress }, tx)
        const stored = yield* updateClaimed(deps, row, "extracting", counts, tx)
        yield* insertChunks(deps, row.no, rows, tx)
        return stored
      }),
    )
  })

const bytesOf = ({ files }: IngestDeps, file: StoredFile) =>
  Stream.mapError(files.read(file), (error) =>
    error._tag === "PortError"
      ? error
      : new PortError({ port: "files", message: `the file can't be read: ${error._tag}` }),
  )

/** The kind was checked at upload, so only an older server has taken another one. */
const requireKind = (filename: string): Effect.Effect<Kind, IngestFailure> => {
  const kind = kindOf(filename)
  return kind
    ? Effect.succeed(kind)
    : Effect.fail(
        new IngestFailure({ code: "broken", message: "Files of this type can't be read." }),
      )
}

/** waiting | extracting -> embedding: reads the file, and stores its chunks. */
export const readFile = (
  deps: IngestDeps,
  row: DocumentRow,
  file: StoredFile,
): Effect.Effect<DocumentRow, ApiError | PortError | IngestFailure | Superseded> =>
  Effect.gen(function* () {
    const kind = yield* requireKind(file.filename)
    const begun = yield* beginReading(deps, row)
    const read = yield* Stream.runFoldEffect(
      deps.reader.read(kind, bytesOf(deps, file)),
      () => begun,
      (now, batch) => storeBatch(deps, now, batch),
    )
    return yield* deps.database.transaction((tx) =>
      Effect.gen(function* () {
        const progress = progressOf("embedding", read)
        yield* markFile(deps, row, { status: "processing", progress }, tx)
        return yield* updateClaimed(deps, row, "extracting", { state: "embedding" }, tx)
      }),
    )
  })
