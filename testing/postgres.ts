import { randomBytes } from "node:crypto"
import { Effect, Exit, Schema, Scope } from "effect"
import pg from "pg"
import type { Database } from "../core/ports/database.ts"
import { openPostgres, Settings } from "../plugins/database-postgres/plugin.ts"
import { fakeLog } from "./fakes/log.ts"
import { serverVariable, testServerUrl } from "./postgres-server.ts"

export interface TestDatabase {
  readonly database: Database
  readonly url: string
  /** The same database over connections of its own, as another process would have it. */
  openAgain(): Promise<Database>
  /** Closes all connections and empties the database. */
  close(): Promise<void>
  /** Closes all connections and drops the database itself, even while others use it. */
  remove(): Promise<void>
}

const onServer = async (server: string, statement: string): Promise<void> => {
  const client = new pg.Client({ connectionString: server })
  await client.connect()
  await client.query(statement).finally(() => client.end())
}

const open = async (url: string) => {
  const scope = Scope.makeUnsafe()
  const settings = Schema.decodeUnknownSync(Settings)({ url })
  const deployment = {
    name: "test",
    dataDir: "/nonexistent",
    modelsDir: "/nonexistent",
    baseUrl: "http://127.0.0.1",
    mode: "server",
  } as const
  const { database } = await Effect.runPromise(
    openPostgres(settings, { deployment, log: fakeLog() }).pipe(Scope.provide(scope)),
  )
  return { database, close: () => Effect.runPromise(Scope.close(scope, Exit.void)) }
}

/** Emptied databases of the embedded server, to be used again: creating one copies 7 MB. */
const emptied: string[] = []

const makeEmpty = async (server: string, isReused: boolean): Promise<string> => {
  const known = isReused ? emptied.pop() : undefined
  if (known !== undefined) return known
  const name = `rakit_test_${randomBytes(8).toString("hex")}`
  await onServer(server, `create database ${name} strategy file_copy`)
  return name
}

const drop = (server: string, name: string): Promise<void> =>
  onServer(server, `drop database ${name} with (force)`)

const giveBack = async (name: string, url: string): Promise<void> => {
  const others =
    "select pg_terminate_backend(pid, 5000) from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()"
  await onServer(url, `${others}; drop schema public cascade; create schema public`)
  emptied.push(name)
}

/** Opens an empty database, of the test server or another one. */
export const openTestDatabase = async (other?: string): Promise<TestDatabase> => {
  const server = other ?? (await testServerUrl())
  const isReused = other === undefined && !process.env[serverVariable]
  const name = await makeEmpty(server, isReused)
  const url = new URL(server)
  url.pathname = `/${name}`
  const opened = [await open(url.href)]
  const openAgain = async () => {
    const again = await open(url.href)
    opened.push(again)
    return again.database
  }
  let isClosed = false
  const end = async (after: () => Promise<void>) => {
    // a database that was returned may be in use by another test
    if (isClosed) return
    isClosed = true
    await Promise.all(opened.map((one) => one.close()))
    await after()
  }
  const remove = () => end(() => drop(server, name))
  const close = () => (isReused ? end(() => giveBack(name, url.href)) : remove())
  return { database: opened[0]!.database, url: url.href, openAgain, close, remove }
}
