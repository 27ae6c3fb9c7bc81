import { Effect } from "effect"
import type { ApiError, PortError, Transaction } from "../../../core/index.ts"
import { textsOf } from "../documents/chunk-rows.ts"
import { type Superseded, tenantOf } from "../documents/claim.ts"
import type { DocumentRow } from "../tables.ts"
import type { VectorSpace } from "../vectors/vector-store.ts"
import { batchSize, type EmbeddedTexts, embedTexts } from "./embed-texts.ts"
import type { IngestDeps } from "./ingest-deps.ts"
import type { GiveWay } from "./turn.ts"

/** Looked up at once, as each look-up goes through all chunks before those that it finds. */
const missingAtOnce = 64 * batchSize

export const isSameSpace = (a: VectorSpace | undefined, b: VectorSpace): boolean =>
  a?.id === b.id && a.dimensions === b.dimensions

/** The indices as runs of neighbours: where each begins, and its length. */
const runsOf = (indices: readonly number[]) => {
  const runs: { readonly from: number; length: number }[] = []
  for (const index of indices) {
    const last = runs.at(-1)
    if (last && last.from + last.length === index) last.length++
    else runs.push({ from: index, length: 1 })
  }
  return runs
}

const putVectors = (
  { vectors: store }: IngestDeps,
  document: bigint,
  indices: readonly number[],
  { space, vectors }: EmbeddedTexts,
  tx: Transaction,
): Effect.Effect<void, PortError> => {
  let at = 0
  return Effect.forEach(
    runsOf(indices),
    ({ from, length }) => {
      const run = vectors.slice(at, at + length)
      at += length
      return store.put(document, space, from, run, tx)
    },
    { discard: true },
  )
}

/**
 * Embeds the chunks of a document that have no vector in the model's space, batch by batch. Each
 * batch is committed together with what `store` writes, which gets its space and its number of
 * chunks. `turn` may end it between two batches. Returns the space; undefined where no chunk was
 * without a vector.
 */
export const embedChunks = <E>(
  deps: IngestDeps,
  row: DocumentRow,
  known: VectorSpace | undefined,
  turn: GiveWay,
  store: (space: VectorSpace, count: number, tx: Transaction) => Effect.Effect<unknown, E>,
): Effect.Effect<VectorSpace | undefined, E | ApiError | PortError | Superseded> =>
  Effect.gen(function* () {
    const { no } = row
    const sinceMs = deps.clock.nowMs()
    const first = Array.from({ length: Math.min(row.chunks, batchSize) }, (_, index) => index)
    let space = known
    for (;;) {
      // before the first vector the length of the model's vectors is not known
      const wanted = space ? yield* deps.vectors.missing(no, space, missingAtOnce) : first
      if (wanted.length === 0) return space
      for (let at = 0; at < wanted.length; at += batchSize) {
        yield* turn(row, sinceMs)
        const indices = wanted.slice(at, at + batchSize)
        const embedded = yield* embedTexts(deps, tenantOf(row), yield* textsOf(deps, no, indices))
        yield* deps.database.transaction((tx) =>
          Effect.andThen(
            store(embedded.space, indices.length, tx),
            putVectors(deps, no, indices, embedded, tx),
          ),
        )
        space = embedded.space
      }
    }
  })
