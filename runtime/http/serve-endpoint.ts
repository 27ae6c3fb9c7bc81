import type { IncomingMessage } from "node:http"
import { Effect, Exit, type Scope } from "effect"
import type { Answer, CallInput, CallPath } from "../../core/call/contract.ts"
import { type Meter, makeMeter } from "../../core/call/meter.ts"
import { type Caller, defaultLimits } from "../../core/caller.ts"
import { type ApiError, apiError, type PortError } from "../../core/errors.ts"
import type { Json, Strings } from "../../core/json.ts"
import type { Endpoint } from "../../core/ports/endpoint.ts"
import type { Catalogue } from "../../core/services/catalogue.ts"
import { systemClock } from "../../core/services/clock.ts"
import type { CallRecord, Exchange } from "./exchange.ts"
import { type Authenticators, authenticate } from "./request/authenticate.ts"
import { type BodyDeps, type ReadBody, readBody } from "./request/body.ts"
import { runMultipartIdempotently } from "./request/multipart-idempotency.ts"
import { sendBytes, sendJson } from "./response/reply.ts"
import { sendEvents } from "./response/sse.ts"
import type { HttpTimings } from "./timings.ts"

export interface ServeDeps extends Authenticators, BodyDeps {
  readonly callPath: CallPath
  readonly catalogue: Catalogue
  readonly timings: HttpTimings
  /** All plugins have started. */
  readonly isReady: () => boolean
  readonly countStream: (change: number) => void
  /** The address of the client: see client-address.ts. */
  readonly addressOf: (req: IncomingMessage) => string
}

export interface Addressed {
  readonly params: Strings
  readonly query: Strings
}

const maxIdempotencyKey = 255

const idempotencyKeyOf = ({ req }: Exchange): Effect.Effect<string | undefined, ApiError> => {
  const key = req.headers["idempotency-key"]
  if (key === undefined || key === "") return Effect.succeed(undefined)
  if (typeof key === "string" && key.length <= maxIdempotencyKey) return Effect.succeed(key)
  return Effect.fail(
    apiError(
      "invalid_request_error",
      `Idempotency-Key: must have at most ${maxIdempotencyKey} characters.`,
      { param: "Idempotency-Key" },
    ),
  )
}

/** Who sends this header does not want to pay: an unreadable value is refused, never run. */
const dryRunOf = ({ req }: Exchange): Effect.Effect<boolean, ApiError> => {
  const said = String(req.headers["x-dry-run"] ?? "0").toLowerCase()
  if (said === "1" || said === "true") return Effect.succeed(true)
  if (said === "" || said === "0" || said === "false") return Effect.succeed(false)
  return Effect.fail(
    apiError("invalid_request_error", "X-Dry-Run: must be 1, or left out.", { param: "X-Dry-Run" }),
  )
}

/**
 * Sends the refusal of a request through the call path, so that it carries the key's rate headers
 * like any other. Nothing else of the request is looked at.
 */
const refusing = ({ query: _, refuses: __, ...endpoint }: Endpoint, error: ApiError): Endpoint => ({
  ...endpoint,
  body: "none",
  plan: () => Effect.fail(error),
})

/** A barred key is authenticated all the same, so that its refusal goes through the call path. */
const callerOf = (endpoint: Endpoint, authorization: string | undefined, by: Authenticators) =>
  authenticate(endpoint, authorization, by).pipe(
    Effect.mapEager(
      (caller): { readonly caller: Caller | undefined; readonly barred?: ApiError } => ({ caller }),
    ),
    Effect.catchEager((error) =>
      error._tag === "ApiError" && error.barred
        ? Effect.succeed({ caller: error.barred, barred: error })
        : Effect.fail(error),
    ),
  )

/**
 * With `*` any page may call, also one that found or stole a key: so of live keys only those of
 * listed origins are taken.
 */
const originRefusal = (
  exchange: Exchange,
  { access }: Endpoint,
  caller: Caller | undefined,
): ApiError | undefined =>
  exchange.testKeysOnly && access === "key" && caller?.tenant.mode === "live"
    ? apiError(
        "origin_not_allowed",
        "Live keys are not taken from pages of this origin: use a test key, or name the origin in `server.cors.origins`.",
      )
    : undefined

const isIdempotentMultipart = (
  endpoint: Endpoint,
  { idempotencyKey, dryRun }: CallInput,
): boolean =>
  endpoint.body === "multipart" &&
  endpoint.creates === true &&
  idempotencyKey !== undefined &&
  !dryRun

/** Begins the stage, and notes how long it took, however it ended. */
const timed = <A, E, R>(meter: Meter, stage: string, begin: () => Effect.Effect<A, E, R>) => {
  const startedMs = systemClock.monotonicMs()
  const end = () => {
    meter.time(stage, systemClock.monotonicMs() - startedMs)
    return undefined
  }
  const effect = begin()
  if (!Exit.isExit(effect)) return Effect.onExitPrimitive(effect, end)
  end()
  return effect
}

const noBody = Effect.succeed<ReadBody>({ body: undefined })

const modelIn = (body: Json): string => {
  const model = (body as { readonly model?: Json } | undefined | null)?.model
  return typeof model === "string" ? model : ""
}

/** What the body and the headers say, beside what is known of every call. */
const readInput = (
  endpoint: Endpoint,
  exchange: Exchange,
  input: CallInput,
  record: CallRecord,
  deps: ServeDeps,
): Effect.Effect<CallInput, ApiError, Scope.Scope> => {
  const { caller, client } = input
  const holder = caller?.tenant.account ?? client?.address ?? ""
  const { bodyMb } = caller?.limits ?? defaultLimits
  const read =
    endpoint.body === "none"
      ? noBody
      : timed(record.meter, "body", () => readBody(exchange, endpoint, { holder, bodyMb }, deps))
  return Effect.flatMapEager(read, ({ body, digest }) => {
    record.model = deps.catalogue.entry(modelIn(body))
    return Effect.flatMapEager(idempotencyKeyOf(exchange), (idempotencyKey) =>
      Effect.mapEager(dryRunOf(exchange), (dryRun) => ({
        ...input,
        body,
        bodyDigest: digest,
        idempotencyKey,
        dryRun,
      })),
    )
  })
}

const clientOf = ({ req }: Exchange, { addressOf }: ServeDeps) => ({
  address: addressOf(req),
  languages: req.headers["accept-language"],
  agent: req.headers["user-agent"],
  signature: req.headers["svc-signature"]?.toString(),
})

/**
 * A body may take two minutes, and what it changes must not be changed by a session that has ended
 * meanwhile, by a new password, say.
 */
const stillSignedIn = (
  endpoint: Endpoint,
  { req }: Exchange,
  deps: ServeDeps,
): Effect.Effect<unknown, ApiError | PortError> =>
  ["session", "admin"].includes(endpoint.access) && endpoint.body !== "none"
    ? authenticate(endpoint, req.headers.authorization, deps)
    : Effect.void

const answerOf = (
  endpoint: Endpoint,
  exchange: Exchange,
  addressed: Addressed,
  deps: ServeDeps,
): Effect.Effect<Answer, ApiError | PortError, Scope.Scope> => {
  const meter = makeMeter(systemClock)
  const record: CallRecord = { meter }
  exchange.call = record
  const identified = timed(meter, "auth", () =>
    callerOf(endpoint, exchange.req.headers.authorization, deps),
  )
  return Effect.flatMapEager(identified, ({ caller, barred }) => {
    record.caller = caller
    const input: CallInput = {
      caller,
      client: clientOf(exchange, deps),
      meter,
      // named here, so that `readInput` adds no member
      body: undefined,
      bodyDigest: undefined,
      idempotencyKey: undefined,
      dryRun: false,
      params: addressed.params,
      query: addressed.query,
      requestId: exchange.requestId,
      priority: "realtime",
      priceFactor: 1,
    }
    const refusal = barred ?? originRefusal(exchange, endpoint, caller)
    if (refusal) return deps.callPath.run(refusing(endpoint, refusal), input)
    return Effect.matchEffect(readInput(endpoint, exchange, input, record, deps), {
      onFailure: (error) => deps.callPath.run(refusing(endpoint, error), input),
      onSuccess: (whole) =>
        Effect.flatMapEager(stillSignedIn(endpoint, exchange, deps), () =>
          isIdempotentMultipart(endpoint, whole)
            ? runMultipartIdempotently(deps.callPath, endpoint, whole)
            : deps.callPath.run(endpoint, whole),
        ),
    })
  })
}

const send = (
  exchange: Exchange,
  answer: Answer,
  { timings, countStream }: ServeDeps,
): Effect.Effect<void, ApiError, Scope.Scope> => {
  const { reply } = answer
  if (exchange.call) exchange.call.cost = answer.cost
  exchange.callId = reply.headers?.["x-call-id"]
  if ("json" in reply) {
    sendJson(exchange, reply, timings.lingerMs)
    return Effect.void
  }
  if ("bytes" in reply) return sendBytes(exchange, reply, timings.writeStallMs)
  return sendEvents(exchange, reply, answer, { ...timings, countOpen: countStream })
}

/**
 * One call over HTTP: authenticate -> body -> the call path -> reply. However it ends, its Scope
 * closes, which settles the call.
 */
export const serveEndpoint = Effect.fnUntraced(function* (
  endpoint: Endpoint,
  exchange: Exchange,
  addressed: Addressed,
  deps: ServeDeps,
): Effect.fn.Return<void, ApiError | PortError, Scope.Scope> {
  const needsAll = endpoint.access !== "public" || endpoint.method !== "GET"
  if (needsAll && !deps.isReady())
    return yield* apiError(
      "server_starting",
      "The server is starting; /readyz says what is still loading.",
      { retryAfterMs: 2_000 },
    )
  const answer = yield* answerOf(endpoint, exchange, addressed, deps)
  exchange.isAsset = endpoint.access === "public" && "bytes" in answer.reply
  exchange.isWatch = endpoint.access === "session" && "events" in answer.reply
  yield* send(exchange, answer, deps)
}, Effect.scoped)
