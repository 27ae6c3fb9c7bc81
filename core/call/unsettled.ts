import { Cause, Effect, Exit, Option } from "effect"
import { type ApiError, apiError, type PortError, statusOf } from "../errors.ts"
import type { Settlement } from "../ports/billing.ts"
import type { Endpoint, Reply } from "../ports/endpoint.ts"
import { admission, holdOf } from "./admission.ts"
import type { CallInput, CallPathDeps } from "./contract.ts"
import { runPlan } from "./mask-internal-errors.ts"
import { makeMeter } from "./meter.ts"
import { settlementOf } from "./paid.ts"
import { type Prepared, prepare } from "./prepare.ts"

const notStreamed = (reply: Reply) =>
  "json" in reply
    ? Effect.succeed(reply)
    : Effect.fail(
        apiError("unsupported_parameter", "A batch line can't be streamed.", { param: "stream" }),
      )

/** Ends a failed call here: its caller gets no settlement to commit. */
const releaseHold = (deps: CallPathDeps, prepared: Prepared, cause: Cause.Cause<ApiError>) => {
  const failure = Option.getOrElse(Cause.findErrorOption(cause), () => apiError("internal_error"))
  return Effect.ignore(deps.billing().settle([settlementOf(prepared, failure, statusOf(failure))]))
}

/** Admits and runs a call, and leaves its settlement to the caller. */
export const runUnsettled = Effect.fnUntraced(function* (
  deps: CallPathDeps,
  endpoint: Endpoint,
  input: CallInput,
): Effect.fn.Return<
  { readonly reply: Reply; readonly settlement: Settlement },
  ApiError | PortError
> {
  const { caller } = input
  if (!caller) return yield* apiError("authentication_error")
  const prepared = yield* prepare(deps, endpoint, input, makeMeter(deps.clock))
  return yield* Effect.acquireUseRelease(
    admission(deps, endpoint, input, caller, holdOf(prepared, "money")),
    () =>
      Effect.scoped(runPlan(deps.log, prepared.plan)).pipe(
        Effect.flatMap(notStreamed),
        Effect.map((reply) => ({
          reply,
          settlement: settlementOf(prepared, undefined, reply.status),
        })),
      ),
    (_, exit) => (Exit.isSuccess(exit) ? Effect.void : releaseHold(deps, prepared, exit.cause)),
  )
})
