import { Effect } from "effect"
import type { ApiError, Caller, PortError } from "../../../core/index.ts"
import type { BatchDeps } from "../deps.ts"
import type { BatchError, BatchRow } from "../tables.ts"
import { Faults } from "./faults.ts"
import { makeModelCheck } from "./model-check.ts"
import { fileGone, scan } from "./scan.ts"

export type PreflightResult =
  /** `lineErrors`: of lines that will fail, while the others run. */
  | { readonly total: number; readonly lineErrors: readonly BatchError[] }
  | { readonly errors: readonly BatchError[] }

export const noEndpoint = (): BatchError => ({
  code: "unsupported_endpoint",
  message: "This deployment does not serve the endpoint any more.",
  line: null,
  param: "endpoint",
})

/** Undefined: the key was revoked meanwhile. Then lines fail as they run. */
const callerOf = (
  { identity }: BatchDeps,
  keyId: string,
): Effect.Effect<Caller | undefined, PortError> =>
  Effect.catch(identity.resume(keyId), (error: ApiError | PortError) =>
    error._tag === "ApiError" ? Effect.succeed(undefined) : Effect.fail(error),
  )

const byLine = (errors: readonly BatchError[]): readonly BatchError[] => {
  const faults = new Faults()
  for (const error of errors) faults.add(error)
  return faults.list()
}

/** Reads the whole input before the first line runs. Returns the number of lines, or the errors. */
export const preflight = (
  deps: BatchDeps,
  batch: BatchRow,
): Effect.Effect<PreflightResult, PortError> =>
  Effect.gen(function* () {
    const target = deps.targets.get(batch.endpoint)
    if (!target) return { errors: [noEndpoint()] }
    const file = yield* deps.files.find(
      { account: batch.account, mode: batch.mode },
      batch.input_file_id,
    )
    if (!file) return { errors: [fileGone()] }
    const caller = yield* callerOf(deps, batch.key_id)
    const models = caller && makeModelCheck(deps, target, caller, batch.id)
    const { lines, faults } = yield* scan(deps, file, batch.endpoint, ({ body }, { line }) =>
      models ? Effect.as(models.check(body, line), undefined) : Effect.succeed(undefined),
    )
    const lineErrors = models?.errors() ?? []
    if (faults.count === 0) return { total: lines, lineErrors: byLine(lineErrors) }
    for (const error of lineErrors) faults.add(error)
    return { errors: faults.list() }
  })
