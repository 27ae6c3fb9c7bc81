import { createInterface } from "node:readline"
import { Cause, Effect, Exit, Option, Schema, Scope } from "effect"
import { CompiledQuery } from "kysely"
import type { PluginError, PortError } from "../../../core/errors.ts"
import type { Deployment } from "../../../core/services/deployment.ts"
import type { Log } from "../../../core/services/log.ts"
import { fakeLog } from "../../../testing/fakes/log.ts"
import { openPostgres } from "../postgres.ts"
import { Settings } from "../settings.ts"

/**
 * A process with the database and nothing else, for tests that kill it: `database-process.ts <data
 * folder> <server|command>`. Writes `waiting` while another server has the folder, then `ready`, or
 * `failed <message>`. Each line it reads then is SQL, whose rows it writes as JSON; `exit` ends
 * without closing; the end of its input closes everything.
 */
const [dataDir = "", mode] = process.argv.slice(2)
const deployment: Deployment = {
  name: "child",
  dataDir,
  modelsDir: dataDir,
  baseUrl: "http://127.0.0.1",
  mode: mode === "server" ? "server" : "command",
}
const scope = Scope.makeUnsafe()
const settings = Schema.decodeUnknownSync(Settings)({})
const say = (line: string) => process.stdout.write(`${line}\n`)

const log: Log = {
  ...fakeLog(),
  warn: (event) => {
    if (event === "database.folder_in_use") say("waiting")
  },
}

const reason = (exit: Exit.Failure<unknown, PluginError | PortError>): string =>
  Option.getOrUndefined(Cause.findErrorOption(exit.cause))?.message ?? Cause.pretty(exit.cause)

const opened = await Effect.runPromiseExit(
  openPostgres(settings, { deployment, log }).pipe(Scope.provide(scope)),
)
if (Exit.isFailure(opened)) {
  say(`failed ${reason(opened)}`)
  await Effect.runPromise(Scope.close(scope, Exit.void))
  process.exit(1)
}
const { database } = opened.value
say("ready")
for await (const line of createInterface({ input: process.stdin })) {
  if (line === "exit") process.exit(1)
  const answer = await Effect.runPromiseExit(
    database.run(() => database.queries().executeQuery(CompiledQuery.raw(line))),
  )
  say(Exit.isSuccess(answer) ? JSON.stringify(answer.value.rows) : `failed ${reason(answer)}`)
}
await Effect.runPromise(Scope.close(scope, Exit.void))
