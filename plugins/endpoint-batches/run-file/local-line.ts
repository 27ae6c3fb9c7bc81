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
import { waitMs } from "../work/retry-policy.ts"
import { operator } from "./operator.ts"

export interface LineResult {
  readonly isOk: boolean
  /** As it stands in its file, without its end. */
  readonly text: string
  readonly inputTokens: number
  readonly outputTokens: number
  readonly costMicros: Micros
}

export interface LineParts {
  readonly callPath: CallPath
  readonly catalogue: Catalogue
  readonly target: Endpoint
  /** What ids are made from: the same file gives the same ones. */
  readonly name: string
  readonly random: () => number
}

/** An engine that is full, or starts again, has room later. */
const patiently = (
  { callPath, catalogue, target, random }: LineParts,
  id: string,
  { body }: InputLine,
) => {
  const attempt = (tries: number): ReturnType<CallPath["runUnsettled"]> =>
    Effect.catchTag(
      callPath.runUnsettled(target, lineInput({ catalogue }, operator, id, body)),
      "ApiError",
      (error) => {
        const ms = waitMs(error, tries, random)
        return ms === undefined
          ? Effect.fail(error)
          : Effect.andThen(Effect.sleep(ms), attempt(tries + 1))
      },
    )
  return attempt(1)
}

const nothing = { inputTokens: 0, outputTokens: 0, costMicros: 0n }

export const runLine = (
  parts: LineParts,
  number: number,
  line: InputLine,
): Effect.Effect<LineResult> =>
  Effect.suspend(() => {
    const id = lineId(parts.name, number)
    return patiently(parts, id, line).pipe(
      Effect.map(({ reply, settlement }): LineResult => {
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
