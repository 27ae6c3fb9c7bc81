import type { Effect, Schema, Scope, Stream } from "effect"
import type { Caller, Client } from "../caller.ts"
import type { ApiError, PortError } from "../errors.ts"
import type { Json, Strings } from "../json.ts"
import type { Micros } from "../money.ts"
import type { CallId } from "../services/ids.ts"
import type { UsageByModel } from "../usage.ts"
import type { ModelContext } from "./model.ts"

/** One decoded call, as an endpoint's `plan` sees it. */
export interface Call<Body> {
  readonly id: CallId
  /** Absent on public endpoints only. */
  readonly caller: Caller | undefined
  /** Absent where no connection is behind the call, as for a batch line. */
  readonly client: Client | undefined
  readonly requestId: string
  readonly body: Body
  readonly params: Strings
  readonly query: Strings
  readonly context: ModelContext
  /** With the prices and the factor in force at admission. */
  price(usage: UsageByModel): Micros
  /** What the meter has read so far. */
  used(): UsageByModel
  /** What that costs; never more than what the plan holds. */
  cost(): Micros
}

/** One part of a multipart body, in the order in which they come. A file's bytes must be read, or left, before the next part arrives. */
export type BodyPart =
  | { readonly kind: "field"; readonly name: string; readonly value: string }
  | {
      readonly kind: "file"
      readonly name: string
      readonly filename: string
      readonly mediaType: string
      readonly bytes: Stream.Stream<Uint8Array, ApiError>
    }

/** The body of a `multipart` endpoint: nothing of it is in memory. It can be read once. */
export interface MultipartBody {
  readonly parts: Stream.Stream<BodyPart, ApiError>
  /** As announced. */
  readonly contentLength: number | undefined
}

/** Bytes of which a client may ask for a part (`Range`). */
export interface Ranged {
  readonly totalBytes: number
  /** From `from` to `to`, both inclusive. */
  slice(from: number, to: number): Stream.Stream<Uint8Array, ApiError>
}

/** What goes back. `events` becomes SSE: each event is one `data:` line; the path settles before the last of them is out. */
export type Reply = { readonly status: number; readonly headers?: Strings } & (
  | { readonly json: Json }
  | {
      readonly bytes: Stream.Stream<Uint8Array, ApiError>
      readonly mediaType: string
      readonly ranged?: Ranged
    }
  | { readonly events: Stream.Stream<Json, ApiError> }
)

/** What a dry run says of work that is done later, in place of the plan's worst case. */
export interface Forecast {
  readonly bound: UsageByModel
  readonly costMicros: Micros
  /** False: it would fail, whatever the balance is. */
  readonly wouldSucceed: boolean
  /** Fields of its own. */
  readonly more: Readonly<Record<string, Json>>
}

/** A checked call. An empty `bound` is free: no hold. */
export interface Plan {
  readonly bound: UsageByModel
  /** Only a dry run asks for it. */
  readonly forecast?: Effect.Effect<Forecast, ApiError | PortError, Scope.Scope>
  /** What a port says goes to the log; clients see `internal_error`, or `backend_busy` of a full queue. */
  readonly run: Effect.Effect<Reply, ApiError | PortError, Scope.Scope>
}

/** An endpoint is data plus one function. HTTP, the batch worker, the dry run, `/openapi.json` and `rakit check` interpret it. */
export interface Endpoint<Body = Json> {
  /** Also the scope that reaches it: `chat.completions`. */
  readonly id: string
  readonly summary: string
  readonly method: "GET" | "POST" | "PATCH" | "DELETE"
  /** `/v1/models/{id}` */
  readonly path: string
  readonly aliases?: readonly string[]
  readonly access: "public" | "key" | "session" | "admin"
  /** `multipart`: a `MultipartBody`. */
  readonly body: Schema.Codec<Body, Json> | "bytes" | "multipart" | "none"
  readonly maxBodyBytes: number
  /** Schema of the JSON reply, for `/openapi.json`. */
  readonly reply?: Schema.Top
  /** Of that reply, for `/openapi.json`; 200 unless told. */
  readonly status?: 201 | 202
  /** Schema of one SSE event, where the reply may be a stream. */
  readonly event?: Schema.Top
  /** Honours `Idempotency-Key`. */
  readonly creates?: true
  /** May be a batch's target. */
  readonly batchable?: true
  /** Decodes and checks, says the worst case, and how to run it. No side effect. */
  plan(call: Call<Body>): Effect.Effect<Plan, ApiError>
}

export const defineEndpoint = <Body>(endpoint: Endpoint<Body>): Endpoint =>
  endpoint as unknown as Endpoint

export const megabyte = 2 ** 20
