import { Effect } from "effect"
import { sql } from "kysely"
import { type Database, PortError } from "../../../core/index.ts"
import { makeSecrets } from "../../../runtime/services/secrets.ts"
import { type FakeClock, fakeClock, fakeLog } from "../../../testing/index.ts"
import { openTestDatabase } from "../../../testing/postgres.ts"
import { makeKeyRing } from "../key-ring.ts"
import { migrations } from "../migrations.ts"
import { makeSigner } from "../signer.ts"

export const hourMs = 60 * 60_000
export const dayMs = 24 * hourMs

export interface ReplicaOptions {
  readonly secret?: string
  readonly clock?: FakeClock
  readonly rotateDays?: number
}

/** Opens replicas on one empty database, each with a key ring of its own. */
export const openReplicas = async () => {
  const test = await openTestDatabase()
  await Effect.runPromise(test.database.migrate("signing-keys", migrations))
  const shared = fakeClock()
  const replica = ({ secret = "shared", clock = shared, rotateDays = 30 }: ReplicaOptions = {}) => {
    const log = fakeLog()
    const asked = { times: 0, isDown: false }
    const database: Database = {
      ...test.database,
      run: (query) =>
        Effect.suspend(() => {
          asked.times++
          return asked.isDown
            ? Effect.fail(new PortError({ port: "database", message: "down" }))
            : test.database.run(query)
        }),
    }
    const ring = makeKeyRing({ database, clock, secrets: makeSecrets(secret), log, rotateDays })
    return { ring, signer: makeSigner(ring), log, asked }
  }
  const rows = async () =>
    (
      await sql<{
        kid: string
        purpose: string
        private_jwk: string | null
        sealed_by: string
      }>`SELECT kid, purpose, private_jwk, sealed_by FROM signing_key ORDER BY created_at, kid`.execute(
        test.database.queries(),
      )
    ).rows
  const empty = () => sql`DELETE FROM signing_key`.execute(test.database.queries())
  return { database: test.database, clock: shared, replica, rows, empty, close: () => test.close() }
}
