import { Effect } from "effect"
import { type ApiError, apiError, portFailure } from "../../../core/errors.ts"
import type { Json } from "../../../core/json.ts"
import type { Log } from "../../../core/services/log.ts"
import type { Workers } from "../../../core/services/workers.ts"
import { limitedTask } from "../chat-format/pool.ts"
import { siblingModule } from "../worker/sibling-module.ts"
import type { Compiled, CompileInput } from "./compile-job.ts"
import type { Grammar } from "./constraint.ts"
import { mostSchemaBytes } from "./schema-limits.ts"

/**
 * Compiles in the thread pool. Fails with `server_busy`, `backend_error`, or a 400 for what is too
 * large; `param` names the request's field.
 */
export const compileInPool = (
  workers: Workers,
  log: Log,
  input: CompileInput,
  param: string,
): Effect.Effect<Compiled, ApiError> => {
  const size = Buffer.byteLength(input.kind === "lark" ? input.lark : JSON.stringify(input.schema))
  if (size > mostSchemaBytes)
    return Effect.fail(
      apiError(
        "invalid_request_error",
        `The schema has ${size} bytes; at most ${mostSchemaBytes} are accepted.`,
        { param },
      ),
    )
  const job = siblingModule(import.meta.url, "./compile-job")
  return limitedTask((limitMs) => workers.run<CompileInput, Compiled>(job, input, limitMs)).pipe(
    Effect.catchTag("PortError", (error) => {
      if (error.why === "busy") return Effect.fail(portFailure(error))
      log.error("grammar.compile_failed", "compiling a grammar failed", {
        reason: error.message,
        cause: error.cause,
      })
      return Effect.fail(apiError("backend_error"))
    }),
  )
}

const at = (path: string): string => (path === "" ? "" : ` at ${path}`)

/**
 * The error for the client: a 400 whose message names the keyword that can't be enforced and its
 * path.
 */
export const asApiError = (
  compiled: Exclude<Compiled, { readonly result: "ok" }>,
  param: string,
): ApiError => {
  if (compiled.result === "invalid")
    return apiError(
      "invalid_request_error",
      `The schema is no JSON Schema${at(compiled.path)}: ${compiled.reason}.`,
      { param },
    )
  if (compiled.result === "tooComplex")
    return apiError(
      "unsupported_parameter",
      `The schema is too complex to be kept: ${compiled.reason}.`,
      { param },
    )
  if (compiled.keyword === "")
    return apiError("invalid_request_error", `The schema can't be satisfied: ${compiled.reason}.`, {
      param,
    })
  return apiError(
    "unsupported_parameter",
    `The keyword "${compiled.keyword}"${at(compiled.path)} can't be kept: ${compiled.reason}.`,
    { param },
  )
}

/**
 * The grammar of a response schema. Not strict: keywords that can't be enforced are left out.
 * Strict: fails with a 400 that names the first of them.
 */
export const grammarOfSchema = (
  workers: Workers,
  log: Log,
  {
    schema,
    isStrict,
    param,
  }: { readonly schema: Json; readonly isStrict: boolean; readonly param: string },
): Effect.Effect<Grammar, ApiError> =>
  compileInPool(workers, log, { kind: "schema", schema, isStrict }, param).pipe(
    Effect.flatMap((compiled) =>
      compiled.result === "ok"
        ? Effect.succeed(compiled.grammar)
        : Effect.fail(asApiError(compiled, param)),
    ),
  )
