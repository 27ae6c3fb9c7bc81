import { Effect } from "effect"
import {
  type ApiError,
  type CallPath,
  type Catalogue,
  type Endpoint,
  type Micros,
  sumUsage,
} from "../../../core/index.ts"
import type { InputLine } from "../input/input-line.ts"
import { lineInput } from "../preflight/model-check.ts"
import { errorLine, lineId, outputLine } from "../work/result-line.ts"
import { retryDelayMs } from "../work/retry-policy.ts"
import { operator } from "./operator.ts"

export interface LocalResult {
  readonly isOk: boolean
  /** The line of its output or error file, without its end. */
  readonly text: string
  readonly inputTokens: number
  readonly outputTokens: number
  readonly costMicros: Micros
}

export interface LocalLineDeps {
  readonly callPath: CallPath
  readonly catalogue: Catalogue
  readonly target: Endpoint
  /**
   * Name of the input file. Ids of lines are made from it, so that another run gives the same ones.
   */
  readonly name: string
  readonly random: () => number
}

/** Retries as the worker does, without its wait for money: nothing is billed here. */
const withRetries = (
  { callPath, catalogue, target, random }: LocalLineDeps,
  id: string,
  { body }: InputLine,
) => {
  const attempt = (tries: number): ReturnType<CallPath["runUnsettled"]> =>
    Effect.catchTag(
      callPath.runUnsettled(target, lineInput({ catalogue }, operator, id, body)),
      "ApiError",
      (error) => {
        const ms = retryDelayMs(error, tries, random)
        return ms === undefined
          ? Effect.fail(error)
          : Effect.andThen(Effect.sleep(ms), attempt(tries + 1))
      },
    )
  return attempt(1)
}

const nothing = { inputTokens: 0, outputTokens: 0, costMicros: 0n }

export const runLocalLine = (
  deps: LocalLineDeps,
  number: number,
  line: InputLine,
): Effect.Effect<LocalResult> =>
  Effect.suspend(() => {
    const id = lineId(deps.name, number)
    return withRetries(deps, id, line).pipe(
      Effect.map(({ reply, settlement }): LocalResult => {
        const { inputTokens, outputTokens } = sumUsage(Object.values(settlement.usage))
        const text = outputLine(
          id,
          line.customId,
          reply.status,
          "json" in reply ? reply.json : null,
        )
        return { isOk: true, text, inputTokens, outputTokens, costMicros: settlement.costMicros }
      }),
      Effect.catchTag("ApiError", (error: ApiError) =>
        Effect.succeed({ isOk: false, text: errorLine(id, line.customId, error), ...nothing }),
      ),
    )
  })
