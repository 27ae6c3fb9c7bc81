import { Effect } from "effect"
import { type Kysely, sql } from "kysely"
import { PortError } from "../../core/errors.ts"
import type { Database } from "../../core/ports/database.ts"
import type { HealthCheck } from "../../core/ports/health.ts"
import { databaseError, isPortError, reasonOf } from "./failure.ts"
import type { Watch } from "./watch.ts"

const longestCheck = "5 seconds"

export interface Failures {
  /** What a query failed with, as the error of the port. Remembers that there was no room. */
  asPortError(error: unknown): PortError
  /** Whether a statement found no room, and none has written since. */
  readonly sawFull: () => boolean
  readonly wrote: () => void
}

/**
 * A server that has no room for its write-ahead log crashes, and then refuses connections: only
 * the disk says why. `noRoom`: what is known of it, where the server is our own.
 */
export const makeFailures = (noRoom: () => string | undefined): Failures => {
  let isFull = false
  return {
    asPortError: (error) => {
      const failure = isPortError(error) ? error : databaseError(error)
      const room = failure.why === "unavailable" ? noRoom() : undefined
      isFull ||= failure.why === "full"
      if (room === undefined) return failure
      const { port, message, cause } = failure
      return new PortError({ port, message: `${message}; ${room}`, cause, why: "full" })
    },
    sawFull: () => isFull,
    wrote: () => {
      isFull = false
    },
  }
}

// biome-ignore lint/suspicious/noExplicitAny: no table of a plugin
type AnyTables = Kysely<any>

/** Takes a quarter of a megabyte on the disk of the tables, and gives it back. */
const writeSome = async (db: AnyTables): Promise<void> => {
  const transaction = await db.startTransaction().execute()
  try {
    await sql`create table rakit_room_probe as select i, repeat('x', 100) as text from generate_series(1, 2000) i`.execute(
      transaction,
    )
  } finally {
    await transaction.rollback().execute()
  }
}

/**
 * What `/readyz` says: whether the server answers, and whether it has room. Unlike `run`, it can be
 * interrupted while the server does not answer.
 */
export const makeCheck = (
  database: Database,
  failures: Failures,
  noRoom: () => string | undefined,
  watch: Watch,
): HealthCheck => {
  const ask = async () => {
    const db: AnyTables = database.queries()
    await sql`select 1`.execute(db)
    if (!failures.sawFull()) return
    await writeSome(db)
    failures.wrote()
  }
  const answers = Effect.callback<void, string>((resume) => {
    const fail = (error: unknown) => resume(Effect.fail(reasonOf(error)))
    const stop = watch.onDown(fail)
    ask()
      .then(() => resume(Effect.void), fail)
      .finally(stop)
    return Effect.sync(stop)
  })
  return {
    name: "database",
    check: Effect.suspend(() => {
      const wrong = noRoom() ?? watch.down()?.message
      return wrong === undefined ? answers : Effect.fail(wrong)
    }).pipe(
      Effect.timeoutOrElse({
        duration: longestCheck,
        orElse: () => Effect.fail("no answer in 5 s"),
      }),
    ),
  }
}
