import { Effect } from "effect"
import {
  type ApiError,
  apiError,
  type Call,
  type Caller,
  type Endpoint,
  type PortError,
  type StoredFile,
} from "../../../core/index.ts"
import type { BatchDeps } from "../deps.ts"
import type { CreateBatch } from "../wire.ts"

/** A valid request for a batch, before its file is looked up. */
export interface BatchRequest {
  readonly callId: string
  readonly requestId: string
  readonly caller: Caller & { readonly keyId: string }
  readonly body: CreateBatch
  /** The endpoint that every line calls. */
  readonly target: Endpoint
}

const targetOf = ({ targets }: BatchDeps, path: string): Effect.Effect<Endpoint, ApiError> => {
  const target = targets.get(path)
  if (target) return Effect.succeed(target)
  const message = `endpoint: must be one of ${[...targets.keys()].join(", ") || "none: nothing here can run in a batch"}`
  return Effect.fail(apiError("invalid_request_error", message, { param: "endpoint" }))
}

const reaches = ({ scopes }: Caller, { id }: Endpoint): Effect.Effect<void, ApiError> =>
  scopes.some((scope) => scope === "*" || scope === id)
    ? Effect.void
    : Effect.fail(
        apiError(
          "permission_denied",
          `This key's scopes don't include '${id}', which the lines target.`,
        ),
      )

export const readRequest = (
  deps: BatchDeps,
  { id, requestId, caller, body }: Call<CreateBatch>,
): Effect.Effect<BatchRequest, ApiError> =>
  Effect.gen(function* () {
    if (caller?.keyId === undefined) return yield* apiError("authentication_error")
    const target = yield* targetOf(deps, body.endpoint)
    yield* reaches(caller, target)
    return { callId: id, requestId, caller: { ...caller, keyId: caller.keyId }, body, target }
  })

/** One error for a file of another account, a deleted and an expired one. */
export const noSuchFile = (): ApiError =>
  apiError("not_found", "There is no such file.", { param: "input_file_id" })

export const inputOf = (
  deps: BatchDeps,
  { caller, body }: BatchRequest,
): Effect.Effect<StoredFile, ApiError | PortError> =>
  Effect.gen(function* () {
    const param = "input_file_id"
    const file = yield* deps.files.find(caller.tenant, body.input_file_id)
    if (!file) return yield* noSuchFile()
    if (file.purpose !== "batch_input")
      return yield* apiError(
        "invalid_request_error",
        `${param}: its purpose must be batch_input, but is ${file.purpose}`,
        { param },
      )
    return file
  })

/** Creating a batch is free, but refused where no line could be paid. */
export const isPayable = (
  { billing, ids }: BatchDeps,
  { requestId, caller }: BatchRequest,
): Effect.Effect<void, ApiError | PortError> => {
  const holdMicros = caller.tenant.mode === "test" ? 0n : 1n
  return billing
    .admit({
      id: ids.call(),
      caller,
      endpoint: "batches.create",
      requestId,
      holdMicros,
      counts: "peek",
    })
    .pipe(
      Effect.asVoid,
      Effect.catchTag("Refusal", () => Effect.fail(apiError("insufficient_quota"))),
    )
}
