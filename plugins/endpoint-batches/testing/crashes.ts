import { Effect } from "effect"
import { type Database, PortError, type Storage } from "../../../core/index.ts"

/** `rollback`: the transaction fails at its end. `answer`: it commits, and nobody hears of it. `put`: the blob is there, and the process is not. */
export type Fault = "rollback" | "answer" | "put"

const crash = () => new PortError({ port: "test", message: "crash" })

/** Once, at the next chance. */
export const makeFaults = (database: Database, storage: Storage) => {
  let next: Fault | undefined
  const isNow = (fault: Fault) => {
    const now = next === fault
    if (now) next = undefined
    return now
  }
  const faultyDatabase: Database = {
    ...database,
    transaction: (body) =>
      Effect.suspend(() => {
        if (isNow("rollback"))
          return database.transaction((tx) => Effect.andThen(body(tx), Effect.fail(crash())))
        return isNow("answer")
          ? Effect.andThen(database.transaction(body), Effect.fail(crash()))
          : database.transaction(body)
      }),
  }
  const faultyStorage: Storage = {
    ...storage,
    put: (key, body, maxBytes) =>
      Effect.flatMap(storage.put(key, body, maxBytes), (info) =>
        isNow("put") ? Effect.fail(crash()) : Effect.succeed(info),
      ),
  }
  const set = (fault: Fault | undefined) => {
    next = fault
  }
  return { database: faultyDatabase, storage: faultyStorage, set }
}
