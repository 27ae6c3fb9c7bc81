import { Effect } from "effect"
import {
  type ApiError,
  apiError,
  type Caller,
  type CallInput,
  type CallPath,
  defineEndpoint,
  type Endpoint,
  type PortError,
  usageOf,
} from "../../../core/index.ts"
import { type Superseded, tenantOf } from "../documents/claim.ts"
import { IngestFailure } from "../reading/document-reader.ts"
import type { DocumentRow } from "../tables.ts"
import { refusalOf, tryAgain } from "./failure.ts"
import type { IngestDeps } from "./ingest-deps.ts"

type Work = Effect.Effect<void, ApiError | PortError | IngestFailure | Superseded>
export type PaidIngest = Effect.Success<ReturnType<CallPath["runUnsettled"]>>

/** A call without a route: the whole file at the model's price for tokens. */
const ingestEndpoint = (
  model: string,
  { tokens }: Pick<DocumentRow, "tokens">,
  work: Effect.Effect<void, ApiError | PortError>,
): Endpoint => {
  const usage = usageOf({ inputTokens: Number(tokens) })
  return defineEndpoint({
    id: "retrieval.ingest",
    summary: "The embeddings of a knowledge file.",
    method: "POST",
    path: "/v1/files",
    // the upload was within the key's scopes, and this belongs to it
    access: "session",
    body: "none",
    maxBodyBytes: 0,
    plan: ({ context }) =>
      Effect.succeed({
        bound: { [model]: usage },
        run: Effect.map(work, () => {
          context.meter(model, usage)
          return { status: 200, json: {} }
        }),
      }),
  })
}

/** What balance and cap do not cover now, they may cover when other calls have ended. */
const isOnlyHeld = (
  { billing, callPath }: IngestDeps,
  endpoint: Endpoint,
  input: CallInput & { readonly caller: Caller },
): Effect.Effect<boolean, ApiError | PortError> =>
  Effect.gen(function* () {
    const { caller } = input
    const { costMicros } = yield* callPath.check(endpoint, input)
    const { balanceMicros } = yield* billing.balance(caller.tenant.account)
    const cap = caller.limits.monthlyCapMicros
    if (costMicros > balanceMicros || cap === 0n || caller.keyId === undefined)
      return costMicros <= balanceMicros
    const spent = yield* billing.spentThisMonth([caller.keyId])
    return (spent.get(caller.keyId) ?? 0n) + costMicros <= cap
  })

const noMoney = ({ tokens }: DocumentRow): IngestFailure =>
  new IngestFailure({
    code: "insufficient_quota",
    message: `The balance, or the monthly cap of the API key, does not cover the ${tokens} tokens of this file. Nothing was charged. Top up, and upload the file again.`,
  })

const callerOf = (
  { identity }: IngestDeps,
  { key_id }: DocumentRow,
): Effect.Effect<Caller, ApiError | PortError | IngestFailure> =>
  key_id === null
    ? Effect.fail(
        new IngestFailure({
          code: "not_permitted",
          message: "The file was uploaded without an API key, so nobody pays for it.",
        }),
      )
    : identity.resume(key_id)

/**
 * Runs the work as a call of the key that uploaded the file, whose price is held meanwhile. The
 * settlement is committed by the caller, so that nothing is paid for a file that is not `ready`.
 */
export const paidIngest = (
  deps: IngestDeps,
  row: DocumentRow,
  work: Work,
): Effect.Effect<PaidIngest, ApiError | PortError | IngestFailure | Superseded> =>
  Effect.gen(function* () {
    const { catalogue, callPath, settings } = deps
    const caller = yield* callerOf(deps, row)
    const { id: model } = yield* catalogue.require("embed", settings.model)
    if (caller.models && !caller.models.includes(model))
      return yield* new IngestFailure({
        code: "not_permitted",
        message: `The API key that uploaded this file does not reach the model '${model}', which embeds it.`,
      })
    let ended: IngestFailure | Superseded | undefined
    const noted = Effect.catch(work, (error) => {
      if (error._tag === "ApiError" || error._tag === "PortError") return Effect.fail(error)
      ended = error
      return Effect.fail(apiError("conflict"))
    })
    const endpoint = ingestEndpoint(model, row, noted)
    const input = {
      caller: { ...caller, tenant: tenantOf(row) },
      body: null,
      requestId: row.file_id,
      priority: "batch",
      priceFactor: 1,
      parent: row.file_id,
    } as const
    return yield* Effect.catchTag(callPath.runUnsettled(endpoint, input), "ApiError", (error) =>
      Effect.gen(function* () {
        if (ended) return yield* ended
        if (error.code !== "insufficient_quota") return yield* error
        if (yield* isOnlyHeld(deps, endpoint, input))
          return yield* tryAgain("what is left is held by other calls")
        return yield* noMoney(row)
      }),
    )
  }).pipe(
    Effect.catchTag(
      "ApiError",
      (error): Effect.Effect<never, ApiError | IngestFailure> =>
        Effect.fail(refusalOf(error) ?? error),
    ),
  )
