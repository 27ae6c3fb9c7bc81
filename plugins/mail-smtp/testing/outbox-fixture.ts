import "reflect-metadata/lite"
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { Effect, Exit, Schema, Scope } from "effect"
import { sql } from "kysely"
import { container as root } from "tsyringe"
import {
  type Database,
  type Deployment,
  type Mail,
  provide,
  resolve,
  type Secrets,
  Tokens,
} from "../../../core/index.ts"
import { makeSecrets } from "../../../runtime/services/secrets.ts"
import { fakeClock, fakeLog, fakeMetrics } from "../../../testing/index.ts"
import { openTestDatabase } from "../../../testing/postgres.ts"
import { plugin } from "../plugin.ts"

export interface ReplicaOptions {
  readonly settings?: { readonly url?: string; readonly from?: string }
  readonly mode?: Deployment["mode"]
  readonly secrets?: Secrets
  readonly database?: Database
}

export const mailOf = (n: number | string = 1): Mail => ({
  to: `user${n}@example.com`,
  subject: `Verifikasi – mail ${n}`,
  text: `Halo,\nhttps://example.com/dashboard#verify=token-${n}\n`,
  html: `<p>Halo <b>${n}</b> 👋</p>`,
})

/** Opens replicas of the plugin on one database, with one clock. */
export const openOutboxFixture = async () => {
  const test = await openTestDatabase()
  await Effect.runPromise(test.database.migrate(plugin.name, plugin.migrations ?? {}))
  const clock = fakeClock()
  const dataDir = mkdtempSync(join(tmpdir(), "rakit-mail-"))
  const stops: (() => Promise<void>)[] = []
  const open = async ({
    settings = {},
    mode = "server",
    secrets = makeSecrets("shared"),
    database = test.database,
  }: ReplicaOptions = {}) => {
    const container = root.createChildContainer()
    const log = fakeLog()
    provide(container, Tokens.database, database)
    provide(container, Tokens.clock, clock)
    provide(container, Tokens.log, log)
    provide(container, Tokens.metrics, fakeMetrics())
    provide(container, Tokens.secrets, secrets)
    provide(container, Tokens.deployment, {
      name: "test",
      dataDir,
      modelsDir: dataDir,
      baseUrl: "http://localhost",
      mode,
    })
    const scope = Scope.makeUnsafe()
    await Effect.runPromise(
      (
        plugin.create(Schema.decodeUnknownSync(plugin.settings)(settings)).start?.(container) ??
        Effect.void
      ).pipe(Scope.provide(scope)),
    )
    const mailer = resolve(container, Tokens.mailer)
    const stop = () => Effect.runPromise(Scope.close(scope, Exit.void))
    stops.push(stop)
    return { mailer, log, stop, send: (mail: Mail) => Effect.runPromise(mailer.send(mail)) }
  }
  const rows = async () =>
    (
      await sql<{
        state: string
        content: string | null
        attempts: number
      }>`SELECT state, content, attempts FROM mail_outbox ORDER BY created_at`.execute(
        test.database.queries(),
      )
    ).rows
  const reset = async () => {
    for (const stop of stops.splice(0)) await stop()
    await sql`DELETE FROM mail_outbox`.execute(test.database.queries())
  }
  const close = async () => {
    await reset()
    await test.close()
    rmSync(dataDir, { recursive: true, force: true })
  }
  return {
    database: test.database,
    openAgain: test.openAgain,
    clock,
    dataDir,
    open,
    rows,
    reset,
    close,
  }
}
