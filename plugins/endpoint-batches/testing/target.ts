import { Effect, Schema } from "effect"
import { type ApiError, defineEndpoint, type Json, usageOf } from "../../../core/index.ts"
import { fakeEntry } from "../../../testing/index.ts"

export const path = "/v1/embeddings"
/** Rp0.75 a line, at half price. */
export const lineMicros = 750_000n

const usage = usageOf({ inputTokens: 1_000 })
const model = fakeEntry("embed").id

/** An endpoint that replies to `n` with what `run` returns. */
export const makeTarget = (run: (n: number) => Effect.Effect<Json, ApiError>) =>
  defineEndpoint({
    id: "embeddings",
    summary: "For tests.",
    method: "POST",
    path,
    access: "key",
    body: Schema.Struct({ n: Schema.Finite }),
    maxBodyBytes: 2 ** 20,
    batchable: true,
    plan: ({ body, context }) =>
      Effect.succeed({
        bound: { [model]: usage },
        run: Effect.map(run(body.n), (json) => {
          context.meter(model, usage)
          return { status: 200, json }
        }),
      }),
  })

export const inputLine = (n: number): string =>
  JSON.stringify({ custom_id: `line-${n}`, method: "POST", url: path, body: { n } })
export const inputText = (lines: number): string =>
  Array.from({ length: lines }, (_, n) => inputLine(n)).join("\n")
