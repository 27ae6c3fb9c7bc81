import { Effect } from "effect"
import { type Database, PortError, type Storage } from "../../../core/index.ts"

/**
 * `rollback`: the transaction fails at its end. `answer`: it commits, and its caller sees a
 * failure. `put`: the blob is stored, and its caller sees a failure. `lost`: it commits, its caller
 * sees that the database is away, and it is.
 */
export type Crash = "rollback" | "answer" | "put" | "lost"

const gone = () => new PortError({ port: "test", message: "gone", why: "unavailable" })
const crashed = () => new PortError({ port: "test", message: "crash" })

/**
 * A database and a store that crash once, at the next chance, when it is set. The database may be
 * away for a time.
 */
export const makeCrashes = (database: Database, storage: Storage) => {
  let next: Crash | undefined
  let isAway = false
  const isNow = (crash: Crash) => {
    const now = next === crash
    if (now) next = undefined
    return now
  }
  const faultyDatabase: Database = {
    ...database,
    run: (query) => Effect.suspend(() => (isAway ? Effect.fail(gone()) : database.run(query))),
    transaction: (body) =>
      Effect.suspend(() => {
        if (isAway) return Effect.fail(gone())
        if (isNow("lost"))
          return Effect.flatMap(database.transaction(body), () => {
            isAway = true
            return Effect.fail(gone())
          })
        if (isNow("rollback"))
          return database.transaction((tx) => Effect.andThen(body(tx), Effect.fail(crashed())))
        return isNow("answer")
          ? Effect.andThen(database.transaction(body), Effect.fail(crashed()))
          : database.transaction(body)
      }),
  }
  const faultyStorage: Storage = {
    ...storage,
    put: (key, body, maxBytes) =>
      Effect.flatMap(storage.put(key, body, maxBytes), (info) =>
        isNow("put") ? Effect.fail(crashed()) : Effect.succeed(info),
      ),
  }
  const set = (crash: Crash | undefined) => {
    next = crash
  }
  const setAway = (away: boolean) => {
    isAway = away
  }
  return { database: faultyDatabase, storage: faultyStorage, set, setAway }
}
