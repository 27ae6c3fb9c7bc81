import { Effect, Stream } from "effect"
import type { CallInput, CallPath } from "../../core/call/contract.ts"
import { makeCallPath } from "../../core/call.ts"
import { type Caller, defaultLimits } from "../../core/caller.ts"
import { type ApiError, errorBody, errorHeaders, isApiError, statusOf } from "../../core/errors.ts"
import type { Json, Strings } from "../../core/json.ts"
import type { Micros } from "../../core/money.ts"
import type { Endpoint, Reply } from "../../core/ports/endpoint.ts"
import type { Outbound } from "../../core/services/outbound.ts"
import { makeOutbound } from "../../runtime/services/outbound/outbound.ts"
import { type FakeBilling, fakeBilling } from "./billing.ts"
import { type FakeModel, fakeCatalogue } from "./catalogue.ts"
import { type FakeClock, fakeClock } from "./clock.ts"
import { fakeIdempotency } from "./idempotency.ts"
import { fakeIds } from "./ids.ts"
import { type FakeLog, fakeLog } from "./log.ts"

/** The real call path over fakes of its dependencies. */
export interface CallPathFixture {
  readonly path: CallPath
  readonly billing: FakeBilling
  readonly idempotency: ReturnType<typeof fakeIdempotency>
  readonly catalogue: ReturnType<typeof fakeCatalogue>
  readonly clock: FakeClock
  readonly ids: ReturnType<typeof fakeIds>
  readonly log: FakeLog
  /** The guard itself: public addresses only. */
  readonly outbound: Outbound
  readonly caller: Caller
  /** A realtime call of `caller`; `more` overrides. */
  input(body: Json, more?: Partial<CallInput>): CallInput
  /** Calls the endpoint, reads a stream to its end, and returns what a client would see. */
  ask(endpoint: Endpoint, body: Json, more?: Partial<CallInput>): Promise<FakeAnswer>
}

export interface FakeAnswer {
  readonly status: number
  readonly headers: Strings
  /** The JSON reply, or the `error` of a failure. */
  readonly json: Json
  /** The text of a reply in bytes. */
  readonly text: string
  /** The events of a streamed reply. */
  readonly events: readonly Json[]
  readonly costMicros: Micros | undefined
}

const failed = (error: ApiError): FakeAnswer => ({
  status: statusOf(error),
  headers: errorHeaders(error),
  json: errorBody(error),
  text: "",
  events: [],
  costMicros: undefined,
})

const readOut = (
  reply: Reply,
  cost: () => Micros | undefined,
): Effect.Effect<FakeAnswer, ApiError> =>
  Effect.gen(function* () {
    const events = "events" in reply ? yield* Stream.runCollect(reply.events) : []
    const text = "bytes" in reply ? yield* Stream.mkString(Stream.decodeText(reply.bytes)) : ""
    return {
      status: reply.status,
      headers: reply.headers ?? {},
      json: "json" in reply ? reply.json : undefined,
      text,
      events,
      costMicros: cost(),
    }
  })

/**
 * A call path with these models, and an account with a balance of `startMicros` (Rp50,000 by
 * default).
 */
export const callPathFixture = (
  models: readonly FakeModel[] = [],
  startMicros: Micros = 50_000_000_000n,
): CallPathFixture => {
  const clock = fakeClock()
  const ids = fakeIds()
  const log = fakeLog()
  const billing = fakeBilling(clock, startMicros)
  const catalogue = fakeCatalogue(...models)
  const idempotency = fakeIdempotency(clock)
  const path = makeCallPath({
    billing: () => billing,
    idempotency: () => idempotency,
    catalogue,
    clock,
    ids,
    log,
    timeoutMs: 60_000,
  })
  const caller: Caller = {
    tenant: { account: "acct_1", mode: "live" },
    keyId: "key_1",
    scopes: ["*"],
    role: "user",
    limits: defaultLimits,
  }
  const input: CallPathFixture["input"] = (body, more) => ({
    caller,
    body,
    requestId: "req_1",
    priority: "realtime",
    priceFactor: 1,
    ...more,
  })
  const ask: CallPathFixture["ask"] = (endpoint, body, more) =>
    Effect.runPromise(
      Effect.scoped(
        Effect.flatMap(path.run(endpoint, input(body, more)), ({ reply, cost }) =>
          readOut(reply, cost),
        ),
      ).pipe(Effect.catchIf(isApiError, (error) => Effect.succeed(failed(error)))),
    )
  const outbound = makeOutbound([])
  return { path, billing, idempotency, catalogue, clock, ids, log, outbound, caller, input, ask }
}
