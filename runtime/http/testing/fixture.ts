import { Effect, Exit, Schema, Scope, Stream } from "effect"
import type { CallPath } from "../../../core/call/contract.ts"
import { makeCallPath } from "../../../core/call.ts"
import { type Caller, defaultLimits } from "../../../core/caller.ts"
import { apiError, PortError } from "../../../core/errors.ts"
import type { Billing, Settlement } from "../../../core/ports/billing.ts"
import { defineEndpoint, type Endpoint } from "../../../core/ports/endpoint.ts"
import type { HealthCheck } from "../../../core/ports/health.ts"
import { freePrice, parsePrice } from "../../../core/pricing.ts"
import { makeCatalogue } from "../../../core/services/catalogue.ts"
import { systemClock } from "../../../core/services/clock.ts"
import { makeIds } from "../../../core/services/ids.ts"
import type { ModelEntry } from "../../../core/services/model-entry.ts"
import { usageOf } from "../../../core/usage.ts"
import { fakeIdempotency } from "../../../testing/fakes/idempotency.ts"
import { fakeLog } from "../../../testing/fakes/log.ts"
import { makeMetrics } from "../../services/metrics.ts"
import { type HttpServerOptions, makeHttpServer } from "../server.ts"

export const goodKey = "svc_test_good"
const caller: Caller = {
  tenant: { account: "acc", mode: "live" },
  keyId: "key",
  scopes: ["*"],
  role: "user",
  limits: defaultLimits,
}

const entry: ModelEntry = {
  id: "m",
  task: "chat",
  tier: "t",
  ownedBy: "o",
  description: "",
  contextTokens: 100,
  maxOutputTokens: 100,
  defaultMaxTokens: 10,
  modalities: ["text"],
  capabilities: [],
  price: { ...freePrice, ...parsePrice({ output: 1_000_000 }) },
  backend: "b",
  sources: [],
  adapters: [],
  options: {},
}

/** Admits everything and records the settlements. */
const recordingBilling = (settlements: Settlement[]): Billing => ({
  admit: () => Effect.succeed({ limit: 60, remaining: 59, resetMs: 1000 }),
  settle: (items) => Effect.sync(() => void settlements.push(...items)),
  voidChildren: () => Effect.void,
  balance: () => Effect.succeed({ balanceMicros: 1_000_000_000n, heldMicros: 0n }),
  spentThisMonth: () => Effect.succeed(new Map()),
  adjust: () => Effect.void,
})

export interface HttpFixture {
  readonly url: string
  readonly port: number
  readonly server: Effect.Success<ReturnType<typeof makeHttpServer>>
  readonly settlements: readonly Settlement[]
  readonly log: ReturnType<typeof fakeLog>
  readonly metrics: ReturnType<typeof makeMetrics>
  readonly catalogue: ReturnType<typeof makeCatalogue>
  close(): Promise<void>
}

export interface FixtureOptions extends Partial<HttpServerOptions> {
  readonly models?: readonly ModelEntry[]
  readonly checkList?: readonly HealthCheck[]
  readonly endpoints?: readonly Endpoint[]
  /** `listening`: nothing is known yet; `published`: routes, but not ready. */
  readonly until?: "listening" | "published" | "ready"
}

/**
 * A real server on a free port of 127.0.0.1, over the real call path with a billing that records.
 */
export const openHttpFixture = async (options: FixtureOptions = {}): Promise<HttpFixture> => {
  const settlements: Settlement[] = []
  const log = fakeLog()
  const metrics = makeMetrics()
  const catalogue = makeCatalogue(options.models ?? [entry])
  if (!options.models)
    catalogue.set("m", {
      state: "ready",
      loaded: {
        task: undefined as never,
        contextTokens: 100,
        modalities: ["text"],
        capabilities: [],
        adapters: [],
        servedBy: "test",
      },
    })
  const billing = recordingBilling(settlements)
  const idempotency = fakeIdempotency(systemClock)
  const callPath: CallPath = makeCallPath({
    billing: () => billing,
    idempotency: () => idempotency,
    catalogue,
    clock: systemClock,
    ids: makeIds(() => Date.now()),
    log,
    timeoutMs: 60_000,
  })
  const scope = Scope.makeUnsafe()
  const server = await Effect.runPromise(
    makeHttpServer({
      host: "127.0.0.1",
      port: 0,
      about: { name: "rakit", version: "0.0.0" },
      callPath,
      identity: () => ({
        authenticate: (key) => {
          if (key === goodKey) return Effect.succeed(caller)
          return Effect.fail(
            key === "svc_test_database_down"
              ? new PortError({ port: "identity", message: "the database is down" })
              : apiError("authentication_error"),
          )
        },
        resume: () => Effect.succeed(caller),
      }),
      catalogue,
      checks: () => options.checkList ?? [],
      starting: () => ["database-postgres"],
      log,
      metrics,
      ...options,
    }).pipe(Scope.provide(scope)),
  )
  const until = options.until ?? "ready"
  if (until !== "listening") server.publish(options.endpoints ?? [])
  if (until === "ready") server.ready()
  return {
    url: server.url,
    port: server.port,
    server,
    settlements,
    log,
    metrics,
    catalogue,
    close: () => Effect.runPromise(Scope.close(scope, Exit.void)),
  }
}

export const Echo = Schema.Struct({
  model: Schema.String,
  count: Schema.optionalKey(Schema.Int),
  extra: Schema.optionalKey(Schema.Unknown),
}).annotate({ identifier: "EchoRequest" })

/** Returns its own body; uses one output token of model `m`. */
export const echo: Endpoint = defineEndpoint({
  id: "echo",
  summary: "Says it again.",
  method: "POST",
  path: "/v1/echo",
  aliases: ["/v2/echo"],
  access: "key",
  body: Echo,
  maxBodyBytes: 2048,
  query: Schema.Struct({ a: Schema.optionalKey(Schema.String) }),
  reply: Schema.Struct({ echo: Echo, query: Schema.Record(Schema.String, Schema.String) }).annotate(
    { identifier: "EchoReply" },
  ),
  plan: (call) => {
    const used = { m: usageOf({ outputTokens: 1 }) }
    return Effect.succeed({
      bound: used,
      run: Effect.sync(() => {
        call.context.meter("m", used.m)
        return { status: 200, json: { echo: call.body, query: call.query } }
      }),
    })
  },
})

/** A public endpoint. */
export const thing: Endpoint = defineEndpoint({
  id: "things.get",
  summary: "One thing.",
  method: "GET",
  path: "/v1/things/{thing_id}",
  access: "public",
  body: "none",
  maxBodyBytes: 0,
  plan: (call) =>
    Effect.succeed({
      bound: {},
      run:
        call.params.thing_id === "none"
          ? Effect.fail(apiError("not_found"))
          : Effect.succeed({ status: 200, json: { id: call.params.thing_id } }),
    }),
})

/** Streams `events`, and meters one output token for each. */
export const streaming = (
  events: Stream.Stream<unknown, ReturnType<typeof apiError>>,
  path = "/v1/stream",
): Endpoint =>
  defineEndpoint({
    id: "stream",
    summary: "Streams.",
    method: "POST",
    path,
    access: "key",
    body: Schema.Struct({}),
    maxBodyBytes: 2048,
    event: Schema.Struct({ n: Schema.Int }),
    plan: (call) =>
      Effect.succeed({
        bound: { m: usageOf({ outputTokens: 1000 }) },
        run: Effect.sync(() => {
          let tokens = 0
          const metered = events.pipe(
            Stream.tap(() =>
              Effect.sync(() => call.context.meter("m", usageOf({ outputTokens: ++tokens }))),
            ),
          )
          return { status: 200, events: metered }
        }),
      }),
  })

export const authorized = {
  authorization: `Bearer ${goodKey}`,
  "content-type": "application/json",
} as const

export const post = (
  url: string,
  body: string | Uint8Array,
  headers: Record<string, string> = authorized,
  init: RequestInit = {},
) => fetch(url, { method: "POST", body: body as never, headers, ...init })
