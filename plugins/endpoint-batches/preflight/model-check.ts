import { Effect } from "effect"
import type { Caller, CallInput, Endpoint, Json } from "../../../core/index.ts"
import type { BatchDeps } from "../deps.ts"
import type { BatchError } from "../tables.ts"

/** Number of model names that are checked; those beyond show as their lines run. */
const maxModels = 200
const maxNameLength = 200
/** Attempts for one model: a line that is wrong in other ways says nothing about its model. */
const maxTries = 10

/** The call that a line of a batch makes. */
export const lineInput = (
  { catalogue }: Pick<BatchDeps, "catalogue">,
  caller: Caller,
  requestId: string,
  body: Json,
): CallInput => ({
  caller,
  body,
  requestId,
  priority: "batch",
  priceFactor: catalogue.batchPriceFactor,
})

const modelOf = (body: Json): string | undefined => {
  const { model } = body as { readonly model?: unknown }
  return typeof model === "string" && model.length <= maxNameLength ? model : undefined
}

/**
 * Checks whether the key may use the models of the lines, and reports each bad model at its first
 * line. Other errors show when a line runs.
 */
export const makeModelCheck = (
  deps: Pick<BatchDeps, "callPath" | "catalogue">,
  target: Endpoint,
  caller: Caller,
  requestId: string,
) => {
  /** Attempts left by model; 0: the answer is known. */
  const left = new Map<string, number>()

  const judge = (model: string, body: Json, line: number): Effect.Effect<BatchError | undefined> =>
    deps.callPath.check(target, lineInput(deps, caller, requestId, body)).pipe(
      Effect.map(() => {
        left.set(model, 0)
        return undefined
      }),
      Effect.catch(({ code, message }) => {
        const isUnknown = deps.catalogue.entry(model) === undefined
        if (code !== "model_not_found" && !isUnknown) return Effect.succeed(undefined)
        left.set(model, 0)
        return Effect.succeed({
          code: "model_not_found" as const,
          message: `body.model: ${code === "model_not_found" ? message : "There is no such model here."}`,
          line,
          param: "body.model",
        })
      }),
    )

  return (body: Json, line: number): Effect.Effect<BatchError | undefined> => {
    const model = modelOf(body)
    const tries =
      model === undefined ? 0 : (left.get(model) ?? (left.size < maxModels ? maxTries : 0))
    if (model === undefined || tries === 0) return Effect.succeed(undefined)
    left.set(model, tries - 1)
    return judge(model, body, line)
  }
}
