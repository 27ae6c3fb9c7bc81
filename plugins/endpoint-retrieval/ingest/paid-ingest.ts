import { Effect } from "effect"
import {
  type ApiError,
  apiError,
  type Caller,
  type CallInput,
  defineEndpoint,
  type Endpoint,
  PortError,
  type Settlement,
  usageOf,
} from "../../../core/index.ts"
import type { Superseded } from "../documents/claim.ts"
import { IngestFailure } from "../reading/document-reader.ts"
import type { DocumentRow } from "../tables.ts"
import { refusalOf } from "./failure.ts"
import type { IngestDeps } from "./ingest-deps.ts"

type Work = Effect.Effect<void, ApiError | PortError | IngestFailure | Superseded>

export interface PaidIngest {
  readonly settlement: Settlement
  /** When the hold may be over, in Unix ms: what was held may be spent from then on. */
  readonly heldUntilMs: number
}

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
          return { status: 200, json: context.deadlineMs }
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

/** Other calls, of other files maybe, end: the file waits. */
const moneyIsHeld = new PortError({
  port: "billing",
  message: "what is left of the balance is held by other calls",
  why: "busy",
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
          message:
            "It is not known which API key uploaded this file, so nobody pays for it. Upload it again.",
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
      caller,
      body: null,
      requestId: row.file_id,
      priority: "batch",
      priceFactor: 1,
      parent: row.file_id,
    } as const
    const refused = Effect.fnUntraced(function* (error: ApiError) {
      if (ended) return yield* Effect.fail(ended)
      if (error.code !== "insufficient_quota") return yield* error
      return yield* (yield* isOnlyHeld(deps, endpoint, input)) ? moneyIsHeld : noMoney(row)
    })
    const paid = callPath.runUnsettled(endpoint, input)
    return yield* Effect.map(
      Effect.catchTag(paid, "ApiError", refused),
      ({ settlement, reply }): PaidIngest => ({
        settlement,
        heldUntilMs: Number("json" in reply ? reply.json : 0),
      }),
    )
  }).pipe(
    Effect.catchTag(
      "ApiError",
      (error): Effect.Effect<never, ApiError | IngestFailure> =>
        Effect.fail(refusalOf(error) ?? error),
    ),
  )
