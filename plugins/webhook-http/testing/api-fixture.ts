import { Effect, Exit, Schema, Scope } from "effect"
import { sql } from "kysely"
import {
  type Caller,
  type Database,
  defaultLimits,
  type JobHandler,
  type Json,
  type Outbound,
  type Queue,
  type Tenant,
  type Transaction,
} from "../../../core/index.ts"
import { makeOutbound } from "../../../runtime/services/outbound/outbound.ts"
import { makeSecrets } from "../../../runtime/services/secrets.ts"
import { askerOf } from "../../../testing/api.ts"
import { callPathFixture, fakeMetrics, fakeQueue } from "../../../testing/index.ts"
import { openTestDatabase } from "../../../testing/postgres.ts"
import { openReceiver, type Receiver } from "../../../testing/receiver.ts"
import { webhookEndpoints } from "../api/webhook-endpoints.ts"
import { makeDeliveryHandler } from "../delivery/delivery-handler.ts"
import { makeEmitter } from "../delivery/emitter.ts"
import type { WebhookDeps } from "../deps.ts"
import { migrations } from "../rows/migrations.ts"
import { Settings } from "../settings.ts"

const quiet = Effect.promise(() => new Promise<void>((done) => setTimeout(done, 1)))

/**
 * The fake queue beside a real database: jobs that were sent in a transaction are queued after its
 * commit.
 */
const inTransactions = (
  queue: Queue,
  database: Database,
): { readonly queue: Queue; readonly database: Database } => {
  const waiting = new Map<Transaction, Effect.Effect<void, never>[]>()
  const send: Queue["send"] = (handler, job, options, tx) =>
    Effect.suspend(() => {
      const now = queue.send(handler, job, options)
      if (!tx) return now
      waiting.get(tx)?.push(Effect.orDie(now))
      return Effect.void
    })
  const transaction: Database["transaction"] = (body) => {
    const sent: Effect.Effect<void, never>[] = []
    const inside = (tx: Transaction) => {
      waiting.set(tx, sent)
      return body(tx)
    }
    return Effect.tap(database.transaction(inside), () =>
      Effect.forEach(sent, (one) => one, { discard: true }),
    )
  }
  return { queue: { ...queue, send }, database: { ...database, transaction } }
}

export interface AskOptions {
  readonly as?: Tenant
  readonly body?: unknown
  readonly idempotencyKey?: string
}

export const ada: Tenant = { account: "acct_ada", mode: "live" }

/**
 * The endpoints, the job handler and the port over a real database and real receivers; only the
 * queue's clock moves by hand.
 */
export const openApiFixture = async (settings: Partial<Settings> = {}) => {
  const test = await openTestDatabase()
  await Effect.runPromise(test.database.migrate("webhook-http", migrations))
  const scope = Scope.makeUnsafe()
  const fake = callPathFixture()
  const queue = fakeQueue(fake.clock)
  const allowed: string[] = []
  const outside: { outbound: Outbound } = { outbound: makeOutbound([]) }
  const real = inTransactions(queue, test.database)
  let random = 0
  const deps: WebhookDeps = {
    ...real,
    ...{
      clock: fake.clock,
      ids: fake.ids,
      log: fake.log,
      metrics: fakeMetrics(),
      secrets: makeSecrets("shared"),
    },
    outbound: {
      refusal: (url) => outside.outbound.refusal(url),
      send: (request) => outside.outbound.send(request),
    },
    settings: { ...Schema.decodeUnknownSync(Settings)({}), ...settings },
    random: () => random,
  }
  const endpoints = webhookEndpoints(Effect.succeed(deps))
  const handler: JobHandler<never> = makeDeliveryHandler(
    Effect.succeed(deps),
    deps.settings,
  ) as JobHandler<never>
  const consume = () => Effect.runPromise(queue.consume(handler).pipe(Scope.provide(scope)))
  const receivers: Receiver[] = []

  const callerOf = (tenant: Tenant): Caller => ({
    tenant,
    keyId: "key_1",
    scopes: ["*"],
    role: "user",
    limits: { ...defaultLimits, rpm: 1_000_000, concurrency: 100, rpd: 1_000_000 },
  })
  const call = askerOf(endpoints, fake)
  const ask = (route: string, { as = ada, body = {}, idempotencyKey }: AskOptions = {}) =>
    call(route, body as Json, { caller: callerOf(as), idempotencyKey })

  const isBusy = () =>
    queue.running.length > 0 || queue.waiting.some(({ dueMs }) => dueMs <= fake.clock.nowMs())
  /** Runs until no job is due. */
  const settle: Effect.Effect<void> = Effect.suspend(() =>
    isBusy() ? queue.advance(0).pipe(Effect.andThen(quiet), Effect.andThen(settle)) : Effect.void,
  )
  const untilNextMs = () =>
    Math.max(0, Math.min(...queue.waiting.map(({ dueMs }) => dueMs)) - fake.clock.nowMs())
  /** Runs all jobs, also later ones, and moves the clock to them. */
  const drain: Effect.Effect<void> = Effect.andThen(
    settle,
    Effect.suspend(() =>
      queue.waiting.length > 0 ? Effect.andThen(queue.advance(untilNextMs()), drain) : Effect.void,
    ),
  )
  const advance = (ms: number) => Effect.runPromise(Effect.andThen(queue.advance(ms), settle))
  const receive = async () => {
    const receiver = await openReceiver()
    receivers.push(receiver)
    allowed.push(receiver.host)
    outside.outbound = makeOutbound(allowed)
    return receiver
  }
  const register = async (url: string, more: Record<string, unknown> = {}, as = ada) => {
    const { status, json } = await ask("POST /v1/webhooks", {
      as,
      body: { url, events: ["batch.completed", "batch.failed"], ...more },
    })
    if (status !== 200) throw new Error(JSON.stringify(json))
    return json as { readonly id: string; readonly secret: string }
  }
  const webhook = makeEmitter(deps)
  await consume()
  return {
    ...{ ask, advance, receive, register, deps, queue, webhook, outside, settle, drain, allowed },
    clock: fake.clock,
    log: fake.log,
    test,
    emit: (data: unknown = { id: "batch-1" }, as = ada, event = "batch.completed") =>
      Effect.runPromise(webhook.emit(as, event, data)),
    deliveries: async (id: string, as = ada) =>
      (await ask(`GET /v1/webhooks/${id}/deliveries?limit=100`, { as })).json.data,
    show: async (id: string, as = ada) => (await ask(`GET /v1/webhooks/${id}`, { as })).json,
    dice: (value: number) => {
      random = value
    },
    empty: async () => {
      for (const table of ["webhook_registration", "webhook_delivery"])
        await sql`DELETE FROM ${sql.table(table)}`.execute(test.database.queries())
    },
    close: async () => {
      await Effect.runPromise(Scope.close(scope, Exit.void))
      for (const receiver of receivers) await receiver.close()
      await test.close()
    },
  }
}
export type ApiFixture = Awaited<ReturnType<typeof openApiFixture>>
