import { createHash } from "node:crypto"
import { Cause, Effect } from "effect"
import { sql } from "kysely"
import type { Database, PortError } from "../../../../core/index.ts"
import type { RetrievalDeps } from "../../deps.ts"
import type { VectorSpace } from "../vector-store.ts"

/** More dimensions are not indexed by pgvector. */
const mostDimensions = 4000

const nameOf = ({ id, dimensions }: VectorSpace): string => {
  const digest = createHash("sha256").update(`${id} ${dimensions}`).digest("hex")
  return `retrieval_hnsw_${digest.slice(0, 16)}`
}

/** An index is of one space: the predicate and the expression of a query must be these. */
export const indexedBy = ({ id, dimensions }: VectorSpace) => ({
  isInSpace: sql`space = ${sql.lit(id)} AND vector_dims(vector) = ${sql.lit(dimensions)}`,
  vector: sql`vector::halfvec(${sql.raw(String(dimensions))})`,
})

export interface HnswIndices {
  /** Whether the space has an index; where it has none, a server makes one in the background. */
  has(space: VectorSpace): Effect.Effect<boolean, PortError>
}

/**
 * Makes the index beside readers and writers. An invalid one is left of a build that was killed.
 * Returns false while another process makes it.
 */
const build = (database: Database, space: VectorSpace): Effect.Effect<boolean, PortError> => {
  const name = nameOf(space)
  const { isInSpace, vector } = indexedBy(space)
  return database.session(async (db) => {
    // of the session, which ends with the connection
    const lock = sql`hashtextextended(${name}, 0)`
    const { rows } = await sql<{
      ours: boolean
    }>`SELECT pg_try_advisory_lock(${lock}) AS ours`.execute(db)
    if (!rows[0]!.ours) return false
    if (!(await isValid(database, name)))
      await sql`DROP INDEX CONCURRENTLY IF EXISTS ${sql.table(name)}`.execute(db)
    await sql`
      CREATE INDEX CONCURRENTLY IF NOT EXISTS ${sql.table(name)} ON retrieval_halfvec
      USING hnsw ((${vector}) halfvec_ip_ops) WHERE ${isInSpace}`.execute(db)
    return true
  })
}

const isValid = async (database: Database, name: string): Promise<boolean> => {
  const { rows } = await sql`
    SELECT FROM pg_index WHERE indexrelid = to_regclass(${name}) AND indisvalid`.execute(
    database.queries(),
  )
  return rows.length > 0
}

/** After a failure, or while another process makes the index. */
const retryMs = 300_000

export const makeHnswIndices = (
  { database, clock, log }: Pick<RetrievalDeps, "database" | "clock" | "log">,
  makesIndices: boolean,
): HnswIndices => {
  const made = new Set<string>()
  /** When each may be begun again. */
  const waiting = new Map<string, number>()
  const make = (space: VectorSpace, name: string) =>
    build(database, space).pipe(
      Effect.tap((isDone) =>
        Effect.sync(() => {
          if (isDone)
            log.info("retrieval.index_made", "an index of vectors was made", { space: space.id })
        }),
      ),
      Effect.catchCause((cause) =>
        Effect.sync(() =>
          log.error("retrieval.index_failed", "an index of vectors could not be made", {
            space: space.id,
            cause: Cause.pretty(cause),
          }),
        ),
      ),
      Effect.ensuring(Effect.sync(() => waiting.set(name, clock.monotonicMs() + retryMs))),
      // a stop does not wait for it: what is left unfinished is made anew
      Effect.forkDetach,
    )
  return {
    has: (space) =>
      Effect.gen(function* () {
        const name = nameOf(space)
        if (made.has(name)) return true
        if (space.dimensions > mostDimensions) return false
        if (yield* database.run(() => isValid(database, name))) {
          made.add(name)
          return true
        }
        if (!makesIndices || clock.monotonicMs() < (waiting.get(name) ?? 0)) return false
        waiting.set(name, Number.POSITIVE_INFINITY)
        yield* make(space, name)
        return false
      }),
  }
}
