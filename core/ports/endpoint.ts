import { Effect, Schema, type Scope, type Stream } from "effect"
import type { Caller, Client } from "../caller.ts"
import type { ApiError } from "../errors.ts"
import type { Json, Strings } from "../json.ts"
import type { Micros } from "../money.ts"
import type { CallId } from "../services/ids.ts"
import type { UsageByModel } from "../usage.ts"
import type { ModelContext } from "./model.ts"
import type { StorageError } from "./storage.ts"

/**
 * What a plan may fail with. The call path logs what is no `ApiError`; clients see
 * what `portFailure` says of a `PortError`, `storage_full` for a full disk.
 */
export type PlanError = ApiError | StorageError

/** What an endpoint without a `query` sees of the parameters behind the `?`: nothing. */
export type NoQuery = Readonly<Record<never, never>>

/** One decoded call, as an endpoint's `plan` sees it. */
export interface Call<Body, Query = NoQuery> {
  readonly id: CallId
  /** Absent on public endpoints only. */
  readonly caller: Caller | undefined
  /** Absent when the call has no connection, as for a batch line. */
  readonly client: Client | undefined
  readonly requestId: string
  readonly body: Body
  readonly params: Strings
  readonly query: Query
  readonly context: ModelContext
  /** Price at the prices and factor in force at admission. */
  price(usage: UsageByModel): Micros
  /** Usage metered so far. */
  used(): UsageByModel
  /** Price of the metered usage, capped by the hold. */
  cost(): Micros
  /** What was noted about the answer; for its receipt. */
  evidence?(): Readonly<Record<string, Json>> | undefined
}

/**
 * One part of a multipart body, in order of arrival. A file's bytes must be read or skipped before
 * the next part arrives.
 */
export type BodyPart =
  | { readonly kind: "field"; readonly name: string; readonly value: string }
  | {
      readonly kind: "file"
      readonly name: string
      readonly filename: string
      readonly mediaType: string
      readonly bytes: Stream.Stream<Uint8Array, ApiError>
    }

/** The body of a `multipart` endpoint, as a stream that can be read once. */
export interface MultipartBody {
  readonly parts: Stream.Stream<BodyPart, ApiError>
  /** From the `Content-Length` header. */
  readonly contentLength: number | undefined
}

/** Bytes that a client may request in part (`Range`). */
export interface Ranged<E = ApiError> {
  readonly totalBytes: number
  /** Bytes `from` to `to`, both inclusive. */
  slice(from: number, to: number): Stream.Stream<Uint8Array, E>
}

/**
 * The reply. `text` is the JSON where the endpoint has it already, as `JSON.stringify` would write
 * it. `events` becomes SSE, one `data:` line per event; the path settles before the last event is
 * sent.
 */
export type Reply<E = ApiError> = { readonly status: number; readonly headers?: Strings } & (
  | { readonly json: Json; readonly text?: string }
  | {
      readonly bytes: Stream.Stream<Uint8Array, E>
      readonly mediaType: string
      readonly ranged?: Ranged<E> | undefined
      /** Where the same bytes are, too: a plain GET is sent there (302). */
      readonly location?: string | undefined
      /**
       * The same bytes as one array, the same object each time: they are for everybody (no secret is
       * in them), so the server may send a compressed copy that it keeps.
       */
      readonly shared?: Uint8Array
    }
  | { readonly events: Stream.Stream<Json, ApiError> }
)

/** What a dry run reports for work that runs later, in place of the plan's worst case. */
export interface Forecast {
  readonly bound: UsageByModel
  readonly costMicros: Micros
  /** False: it would fail regardless of the balance. */
  readonly wouldSucceed: boolean
  /** Endpoint-specific fields. */
  readonly more: Readonly<Record<string, Json>>
}

/** A checked call with its worst case. An empty `bound` is free: no hold. */
export interface Plan {
  readonly bound: UsageByModel
  /** Used by dry runs only. */
  readonly forecast?: Effect.Effect<Forecast, PlanError, Scope.Scope>
  readonly run: Effect.Effect<Reply<PlanError>, PlanError, Scope.Scope>
}

/**
 * A plan that costs nothing. `check`: for a dry run, what can be said only by reading on, and
 * whether it would succeed.
 */
export const freePlan = (run: Plan["run"], check?: Effect.Effect<boolean, PlanError>): Plan => ({
  bound: {},
  run,
  ...(check && {
    forecast: Effect.map(check, (wouldSucceed) => ({
      bound: {},
      costMicros: 0n,
      wouldSucceed,
      more: {},
    })),
  }),
})

/** What a JSON body may hold, so that parsing and decoding it takes milliseconds. */
export interface JsonBounds {
  /** Members of objects: a new name costs a parser as much as many numbers. */
  readonly keys: number
  readonly keysOfObject: number
  /** Objects, arrays and strings, names of members included. */
  readonly values: number
  /** Commas, and so numbers, too. */
  readonly elements: number
}

export const defaultBounds: JsonBounds = {
  keys: 40_000,
  keysOfObject: 10_000,
  values: 100_000,
  elements: 100_000,
}

/** Maximum nesting depth of a body. */
export const maxDepth = 100

/**
 * An endpoint is data plus one function. HTTP, the batch worker, the dry run, `/openapi.json` and
 * `rakit check` interpret it.
 */
export interface Endpoint<Body = Json, Query = NoQuery> {
  /** Also the scope that grants it: `chat.completions`. */
  readonly id: string
  readonly summary: string
  readonly method: "GET" | "POST" | "PATCH" | "DELETE"
  /** `/v1/models/{id}` */
  readonly path: string
  readonly aliases?: readonly string[]
  readonly access: "public" | "key" | "session" | "admin"
  /** `multipart`: a `MultipartBody`. */
  readonly body: Schema.Codec<Body, Json> | "bytes" | "multipart" | "none"
  /** Sees the body as it was sent, as decoding drops the fields that it does not know. */
  refuses?(body: Json): ApiError | undefined
  readonly maxBodyBytes: number
  /** The parameters behind the `?`, decoded by this schema; others are ignored. */
  readonly query?: Schema.Codec<Query, Json>
  /**
   * The fields of a form, for `/openapi.json`; `fileField` for a file. Beside `bytes`: the JSON that
   * they hold.
   */
  readonly form?: Schema.Top
  /**
   * With it a JSON endpoint takes `multipart/form-data`, too: reads all of a form into the body that
   * says the same. A file may stay a `Uint8Array`.
   */
  readForm?(form: MultipartBody): Effect.Effect<Json, ApiError>
  /** The largest part of a JSON body outside of data URIs and fields `data`; `maxBodyBytes` by default. */
  readonly maxTextBytes?: number
  /** What a JSON body may hold; `defaultBounds` by default. */
  readonly bounds?: JsonBounds
  /** Schema of the JSON reply, for `/openapi.json`. */
  readonly reply?: Schema.Top
  /** Media types of a reply in bytes, for `/openapi.json`. */
  readonly mediaTypes?: readonly string[]
  /** Status of that reply, for `/openapi.json`; 200 by default. */
  readonly status?: 201 | 202
  /** Schema of one SSE event, where the reply may be a stream. */
  readonly event?: Schema.Top
  /** Honours `Idempotency-Key`. */
  readonly creates?: true
  /** May be a batch's target. */
  readonly batchable?: true
  /** Decodes and checks the call; returns its worst case and how to run it. No side effect. */
  plan(call: Call<Body, Query>): Effect.Effect<Plan, ApiError>
}

export const defineEndpoint = <Body, Query = NoQuery>(endpoint: Endpoint<Body, Query>): Endpoint =>
  endpoint as unknown as Endpoint

/** A file in a `form`. */
export const fileField = Schema.String.annotate({ format: "binary" })

export const megabyte = 2 ** 20
