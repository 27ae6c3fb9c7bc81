import { randomBytes } from "node:crypto"
import { Effect, Exit, Schema, Scope } from "effect"
import pg from "pg"
import type { Database } from "../../core/services/database.ts"
import { fakeLog } from "../../core/testing/log.ts"
import { openPostgres, Settings } from "../../plugins/database-postgres/plugin.ts"
import { testServerUrl } from "./test-server.ts"

export interface TestDatabase {
  readonly database: Database
  readonly url: string
  /** The same database over connections of its own, as another process would have it. */
  openAgain(): Promise<Database>
  /** Closes all and drops the database. */
  close(): Promise<void>
}

const onServer = async (server: string, statement: string): Promise<void> => {
  const client = new pg.Client({ connectionString: server })
  await client.connect()
  await client.query(statement).finally(() => client.end())
}

const open = async (url: string) => {
  const scope = Scope.makeUnsafe()
  const settings = Schema.decodeUnknownSync(Settings)({ url })
  const deployment = { name: "test", dataDir: "/nonexistent", modelsDir: "/nonexistent", baseUrl: "http://127.0.0.1", role: "serve" } as const
  const { database } = await Effect.runPromise(openPostgres(settings, { deployment, log: fakeLog() }).pipe(Scope.provide(scope)))
  return { database, close: () => Effect.runPromise(Scope.close(scope, Exit.void)) }
}

/** An empty database with a random name. */
export const openTestDatabase = async (): Promise<TestDatabase> => {
  const server = await testServerUrl()
  const name = `rakit_test_${randomBytes(8).toString("hex")}`
  // an empty database is 7 MB: copied as files it takes a sixth of the work of writing them through the log
  await onServer(server, `create database ${name} strategy file_copy`)
  const url = new URL(server)
  url.pathname = `/${name}`
  const opened = [await open(url.href)]
  const openAgain = async () => {
    const again = await open(url.href)
    opened.push(again)
    return again.database
  }
  const close = async () => {
    await Promise.all(opened.map((one) => one.close()))
    await onServer(server, `drop database ${name} with (force)`)
  }
  return { database: opened[0]!.database, url: url.href, openAgain, close }
}
