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

/** What is known of a model that lines name. */
interface Named {
  readonly firstLine: number
  lines: number
  /** Attempts left; 0: the answer is known. */
  tries: number
  /** Why the key reaches no such model at the endpoint. */
  refusal?: string
}

export interface ModelCheck {
  /** Looks at the model of a line. Returns whether the line will fail for want of it. */
  check(body: Json, line: number): Effect.Effect<boolean>
  /** Number of lines that will. */
  lines(): number
  /** One error for each such model, at its first line. */
  errors(): readonly BatchError[]
}

const errorOf = ({ firstLine, lines, refusal }: Named): BatchError => ({
  code: "model_not_found",
  message: `body.model: ${refusal} Lines that name it: ${lines.toLocaleString("en")}.`,
  line: firstLine,
  param: "body.model",
})

/**
 * Checks whether the key may use the models of the lines. A line whose model it does not reach
 * fails as it runs, and costs nothing; the others run. Other errors show when a line runs.
 */
export const makeModelCheck = (
  deps: Pick<BatchDeps, "callPath" | "catalogue">,
  target: Endpoint,
  caller: Caller,
  requestId: string,
): ModelCheck => {
  const named = new Map<string, Named>()
  const missing = () => [...named.values()].filter(({ refusal }) => refusal !== undefined)

  const judge = (model: string, known: Named, body: Json): Effect.Effect<boolean> =>
    deps.callPath.check(target, lineInput(deps, caller, requestId, body)).pipe(
      Effect.map(() => {
        known.tries = 0
        return false
      }),
      Effect.catch(({ code, message, param }) => {
        const isUnknown = deps.catalogue.entry(model) === undefined
        // an adapter that is unknown says nothing about the model
        if ((code !== "model_not_found" || param === "adapter") && !isUnknown)
          return Effect.succeed(false)
        known.tries = 0
        known.refusal = code === "model_not_found" ? message : "There is no such model here."
        return Effect.succeed(true)
      }),
    )

  const knownOf = (model: string, firstLine: number): Named | undefined => {
    const known = named.get(model)
    if (known || named.size >= maxModels) return known
    const fresh = { firstLine, lines: 0, tries: maxTries }
    named.set(model, fresh)
    return fresh
  }

  return {
    check: (body, line) =>
      Effect.suspend(() => {
        const model = modelOf(body)
        const known = model === undefined ? undefined : knownOf(model, line)
        if (model === undefined || !known) return Effect.succeed(false)
        known.lines += 1
        if (known.tries === 0) return Effect.succeed(known.refusal !== undefined)
        known.tries -= 1
        return judge(model, known, body)
      }),
    lines: () => missing().reduce((sum, { lines }) => sum + lines, 0),
    errors: () => missing().map(errorOf),
  }
}
