import { Effect } from "effect"
import type { SchemaChecker, SchemaReport } from "../../../core/ports/schema-checker.ts"
import type { Log } from "../../../core/services/log.ts"
import type { Workers } from "../../../core/services/workers.ts"
import { asApiError, compileInPool } from "./compile-in-pool.ts"
import type { Compiled } from "./compile-job.ts"

const param = "schema"

const errorOf = (
  compiled: Exclude<Compiled, { readonly result: "invalid" }>,
): string | undefined =>
  compiled.result === "ok" ? undefined : asApiError(compiled, param).message

/** Reports whether a strict request would accept a schema, and why not. */
export const makeSchemaChecker = (
  services: () => { readonly workers: Workers; readonly log: Log },
): SchemaChecker => ({
  check: (schema) =>
    Effect.suspend(() => {
      const { workers, log } = services()
      return compileInPool(
        workers,
        log,
        { kind: "schema", schema, isStrict: true, withReport: true },
        param,
      )
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
