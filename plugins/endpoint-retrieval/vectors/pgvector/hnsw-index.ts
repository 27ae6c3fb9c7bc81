import { createHash } from "node:crypto"
import { Cause, Effect } from "effect"
import { sql } from "kysely"
import type { Database, Log, PortError } from "../../../../core/index.ts"
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
  return database.run(() =>
    database
      .queries()
      .connection()
      .execute(async (db) => {
        const lock = sql`hashtextextended(${name}, 0)`
        const { rows } = await sql<{
          ours: boolean
        }>`SELECT pg_try_advisory_lock(${lock}) AS ours`.execute(db)
        if (!rows[0]!.ours) return false
        try {
          await sql`SET statement_timeout = 0`.execute(db)
          if (!(await isValid(database, name)))
            await sql`DROP INDEX CONCURRENTLY IF EXISTS ${sql.table(name)}`.execute(db)
          await sql`
            CREATE INDEX CONCURRENTLY IF NOT EXISTS ${sql.table(name)} ON retrieval_halfvec
            USING hnsw ((${vector}) halfvec_ip_ops) WHERE ${isInSpace}`.execute(db)
          return true
        } finally {
          await sql`RESET statement_timeout`.execute(db)
          await sql`SELECT pg_advisory_unlock(${lock})`.execute(db)
        }
      }),
  )
}

const isValid = async (database: Database, name: string): Promise<boolean> => {
  const { rows } = await sql`
    SELECT FROM pg_index WHERE indexrelid = to_regclass(${name}) AND indisvalid`.execute(
    database.queries(),
  )
  return rows.length > 0
}

export const makeHnswIndices = (
  database: Database,
  log: Log,
  makesIndices: boolean,
): HnswIndices => {
  const made = new Set<string>()
  /** One that failed stays here: the next start tries again. */
  const begun = new Set<string>()
  const make = (space: VectorSpace, name: string) =>
    build(database, space).pipe(
      Effect.tap((isDone) =>
        Effect.sync(() => {
          begun.delete(name)
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
        // the database goes on with one that took longer than a query of ours may
        if (!makesIndices || begun.has(name)) return false
        begun.add(name)
        yield* make(space, name)
        return false
      }),
  }
}
