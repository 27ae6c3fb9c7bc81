import { Effect } from "effect"
import type { Database } from "../../../core/index.ts"
import type { FakeClock } from "../../../testing/index.ts"
import type { RetrievalTables } from "../tables.ts"
import type { VectorHit, VectorSpace, VectorStore } from "../vectors/vector-store.ts"

interface Kept {
  readonly document: bigint
  readonly index: number
  readonly space: string
  readonly vector: Float32Array
}

const nameOf = ({ id, dimensions }: VectorSpace): string => `${id}/${dimensions}`

const unit = (vector: Float32Array, dimensions: number): Float32Array => {
  const prefix = vector.slice(0, dimensions)
  const norm = Math.hypot(...prefix)
  return prefix.map((value) => value / norm)
}

const dot = (a: Float32Array, b: Float32Array): number =>
  a.reduce((sum, value, i) => sum + value * b[i]!, 0)

/** Vectors in memory, with the documents of a real database. */
export const memoryVectors = (database: Database, clock: FakeClock): VectorStore => {
  let kept: readonly Kept[] = []
  const readyOf: (
    query: Parameters<VectorStore["search"]>[0],
  ) => ReturnType<typeof database.run<readonly { readonly no: bigint }[]>> = ({ tenant }) =>
    database.run(() =>
      database
        .queries<RetrievalTables>()
        .selectFrom("retrieval_document")
        .select("no")
        .where("account", "=", tenant.account)
        .where("mode", "=", tenant.mode)
        .where("state", "=", "ready")
        .where("expires_at", ">", new Date(clock.nowMs()))
        .execute(),
    )
  return {
    name: "memory",
    put: (document, space, from, vectors) =>
      Effect.sync(() => {
        const added = vectors.map((vector, i) => ({
          document,
          index: from + i,
          space: nameOf(space),
          vector: unit(vector, space.dimensions),
        }))
        kept = [...kept, ...added]
      }),
    missing: () => Effect.die("not needed here"),
    search: (query) =>
      Effect.map(readyOf(query), (ready) => {
        const { space, vector, limit, ranges } = query
        const asked = unit(vector, space.dimensions)
        const documents = new Set(ready.map(({ no }) => no))
        const isWanted = ({ document, index, space: own }: Kept) =>
          own === nameOf(space) &&
          documents.has(document) &&
          (!ranges ||
            ranges.some(
              ({ document: no, from = 0, to = Number.POSITIVE_INFINITY }) =>
                no === document && from <= index && index <= to,
            ))
        return kept
          .filter(isWanted)
          .map(
            (one): VectorHit => ({
              document: one.document,
              index: one.index,
              score: dot(one.vector, asked),
            }),
          )
          .sort((a, b) => b.score - a.score || Number(a.document - b.document) || a.index - b.index)
          .slice(0, limit)
      }),
    remove: (document) =>
      Effect.sync(() => {
        kept = kept.filter((one) => one.document !== document)
      }),
  }
}
