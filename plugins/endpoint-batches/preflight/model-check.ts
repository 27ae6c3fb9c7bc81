import { Effect } from "effect"
import type { Caller, CallInput, Endpoint, Json } from "../../../core/index.ts"
import type { BatchDeps } from "../deps.ts"
import type { BatchError } from "../tables.ts"

/** Names that are remembered; what an input names beyond them is found out as its lines run. */
const maxModels = 200
const maxNameLength = 200
/** Lines that are wrong in other ways, and so say nothing of their model. */
const maxTries = 10

/** A line of a batch, as a call. */
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

/** May this key use the models that the lines name? Says it of the first line of each. Whatever else is wrong with a line shows when it runs. */
export const makeModelCheck = (
  deps: Pick<BatchDeps, "callPath" | "catalogue">,
  target: Endpoint,
  caller: Caller,
  requestId: string,
) => {
  /** How often it is to be tried yet; 0: it is known. */
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
          code: "model_not_found",
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
