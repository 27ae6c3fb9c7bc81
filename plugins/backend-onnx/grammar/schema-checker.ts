import { Effect, type Scope } from "effect"
import type { SchemaChecker, SchemaReport } from "../../../core/ports/schema-checker.ts"
import type { Log } from "../../../core/services/log.ts"
import type { Workers } from "../../../core/services/workers.ts"
import { asApiError, compileInPool } from "./compile-in-pool.ts"
import type { Compiled } from "./compile-job.ts"
import type { SharedVocabulary } from "./grammar-vocabulary.ts"

/** The vocabularies of the chat models that are open. */
export interface OpenVocabularies {
  /** Each once. */
  open(): readonly SharedVocabulary[]
  /** Counts a model in while the scope is open. */
  add(vocabulary: SharedVocabulary): Effect.Effect<void, never, Scope.Scope>
}

export const makeOpenVocabularies = (): OpenVocabularies => {
  const added = new Set<{ readonly vocabulary: SharedVocabulary }>()
  return {
    open: () => [
      ...new Map([...added].map(({ vocabulary }) => [vocabulary.digest, vocabulary])).values(),
    ],
    add: (vocabulary) =>
      Effect.suspend(() => {
        const entry = { vocabulary }
        added.add(entry)
        return Effect.addFinalizer(() => Effect.sync(() => void added.delete(entry)))
      }),
  }
}

const param = "schema"

const errorOf = (
  compiled: Exclude<Compiled, { readonly result: "invalid" }>,
): string | undefined =>
  compiled.result === "ok" ? undefined : asApiError(compiled, param).message

/**
 * Reports whether a strict request would accept a schema, and why not: over the tokens of every
 * chat model that is open, as its caller names none.
 */
export const makeSchemaChecker = (
  services: () => { readonly workers: Workers; readonly log: Log },
  vocabularies: OpenVocabularies,
): SchemaChecker => ({
  check: (schema) =>
    Effect.suspend(() => {
      const { workers, log } = services()
      const over = (vocabulary?: SharedVocabulary) => {
        const shared = vocabulary && { vocabulary }
        const input = {
          kind: "schema",
          schema,
          isStrict: true,
          withReport: true,
          ...shared,
        } as const
        return compileInPool(workers, log, input, param)
      }
      const [first, ...others] = vocabularies.open()
      return Effect.gen(function* () {
        let found = yield* over(first)
        for (const vocabulary of others) if (found.result === "ok") found = yield* over(vocabulary)
        return found
      })
    }).pipe(
      Effect.flatMap((compiled) => {
        if (compiled.result === "invalid") return Effect.fail(asApiError(compiled, param))
        const error = errorOf(compiled)
        const report: SchemaReport = {
          accepted: compiled.result === "ok",
          keywords: compiled.keywords ?? [],
          compileMs: Math.round(compiled.compileMs * 1000) / 1000,
          ...(error !== undefined && { error }),
        }
        return Effect.succeed(report)
      }),
    ),
})
