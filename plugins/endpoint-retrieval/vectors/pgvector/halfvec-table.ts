import { Effect } from "effect"
import { type Kysely, sql } from "kysely"
import type { Database, Deployment, Log, Migrations, PortError } from "../../../../core/index.ts"
import { floatOfHalf } from "../half-floats.ts"

// biome-ignore lint/suspicious/noExplicitAny: a migration knows no types
type AnyDb = Kysely<any>

/** The first with iterative scans of an index, on which filters by tenant depend. */
const neededVersion = [0, 8] as const

const migrations: Migrations = {
  "001-halfvec": {
    up: async (db: AnyDb) => {
      await sql`CREATE EXTENSION IF NOT EXISTS vector`.execute(db)
      await sql`
        CREATE TABLE retrieval_halfvec (
          document_no bigint NOT NULL,
          idx int NOT NULL,
          space text NOT NULL,
          vector halfvec NOT NULL,
          PRIMARY KEY (document_no, space, idx)
        )`.execute(db)
      await sql`ALTER TABLE retrieval_halfvec ALTER COLUMN vector SET STORAGE MAIN`.execute(db)
    },
  },
}

interface Offered {
  readonly version: string
  readonly isMade: boolean
}

/** The extension that the server has, made or not. */
const offered = (database: Database): Effect.Effect<Offered | undefined, PortError> =>
  Effect.map(
    database.run(() =>
      sql<Offered>`
        SELECT coalesce(installed_version, default_version) AS version, installed_version IS NOT NULL AS "isMade"
        FROM pg_available_extensions WHERE name = 'vector'`.execute(database.queries()),
    ),
    ({ rows }) => rows[0],
  )

const isRecent = (version: string): boolean => {
  const [major = 0, minor = 0] = version.split(".").map(Number)
  return major > neededVersion[0] || (major === neededVersion[0] && minor >= neededVersion[1])
}

interface PlainRow {
  readonly document_no: bigint
  readonly idx: number
  readonly space: string
  readonly vector: Buffer
}

const rowsAtOnce = 500

/** The vectors of a database that had no pgvector before. Returns how many were moved. */
const movePlain = (database: Database): Effect.Effect<number, PortError> => {
  const asText = (halves: Buffer) => {
    const numbers = Array.from(
      { length: halves.length / 2 },
      (_, i) => floatOfHalf[halves.readUInt16LE(2 * i)]!,
    )
    return `[${numbers.join(",")}]`
  }
  const moveSome = database.transaction((tx) =>
    database.run(async () => {
      const db = database.queries(tx)
      const { rows } = await sql<PlainRow>`
        DELETE FROM retrieval_vector WHERE ctid = ANY (ARRAY(
          SELECT ctid FROM retrieval_vector LIMIT ${rowsAtOnce} FOR UPDATE
        )) RETURNING *`.execute(db)
      if (rows.length > 0)
        await sql`
          INSERT INTO retrieval_halfvec (document_no, idx, space, vector) VALUES ${sql.join(
            rows.map(
              ({ document_no, idx, space, vector }) =>
                sql`(${document_no}, ${idx}, ${space}, ${asText(vector)}::halfvec)`,
            ),
          )} ON CONFLICT DO NOTHING`.execute(db)
      return rows.length
    }),
  )
  return Effect.gen(function* () {
    let moved = 0
    for (;;) {
      const count = yield* moveSome
      moved += count
      if (count < rowsAtOnce) return moved
    }
  })
}

const isTable = (database: Database): Effect.Effect<boolean, PortError> =>
  Effect.map(
    database.run(() =>
      sql`SELECT WHERE to_regclass('retrieval_halfvec') IS NOT NULL`.execute(database.queries()),
    ),
    ({ rows }) => rows.length > 0,
  )

/** insufficient_privilege */
const isRefused = ({ cause }: PortError): boolean =>
  cause instanceof Error && "code" in cause && cause.code === "42501"

const migrate = (database: Database): Effect.Effect<void, PortError> =>
  Effect.asVoid(database.migrate("endpoint-retrieval-pgvector", migrations))

/** Returns why not, where the database does not let it be made. Other failures are failures. */
const makeTable = (database: Database): Effect.Effect<string | undefined, PortError> =>
  Effect.gen(function* () {
    const known = yield* offered(database)
    if (!known) return "its server does not have the extension 'vector'"
    if (!isRecent(known.version))
      return `its extension 'vector' is ${known.version}; ${neededVersion.join(".")} or newer is needed`
    const made = Effect.as(migrate(database), undefined)
    if (known.isMade) return yield* made
    return yield* Effect.catch(made, (failure) =>
      isRefused(failure)
        ? Effect.succeed("its user may not make the extension 'vector' (CREATE EXTENSION vector)")
        : Effect.fail(failure),
    )
  })

/**
 * A server makes the extension and the table of half vectors, where the database has them, and
 * moves what was kept without. A command makes nothing: the server beside it would look for its
 * vectors where they were. Returns why there is no table.
 */
export const openHalfvecTable = (
  database: Database,
  log: Log,
  mode: Deployment["mode"],
): Effect.Effect<string | undefined, PortError> =>
  Effect.gen(function* () {
    const isThere = yield* isTable(database)
    if (mode === "command") return isThere ? undefined : "no server has made its table there"
    const why = yield* isThere ? Effect.as(migrate(database), undefined) : makeTable(database)
    if (why !== undefined) return why
    const moved = yield* movePlain(database)
    if (moved > 0)
      log.info("retrieval.vectors_moved", "vectors were moved into columns of pgvector", { moved })
    return undefined
  })
