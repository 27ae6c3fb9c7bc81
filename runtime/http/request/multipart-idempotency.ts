import { Effect, type Scope } from "effect"
import type { Answer, CallInput, CallPath } from "../../../core/call/contract.ts"
import { type ApiError, apiError, type PortError } from "../../../core/errors.ts"
import type { Json } from "../../../core/json.ts"
import type { Endpoint, MultipartBody, Reply } from "../../../core/ports/endpoint.ts"
import { digestForm, readThrough } from "./multipart-digest.ts"

/** Stored under the key in place of the reply. */
interface RememberedReply {
  readonly digest: string | undefined
  readonly json: Json
}

const replayed = "idempotent-replayed"

const jsonOf = (reply: Reply): RememberedReply | undefined =>
  "json" in reply ? (reply.json as RememberedReply) : undefined

/**
 * The digest of a streamed body is known only after it was read: a repeated form is read too, and
 * its digest compared with the stored one.
 */
export const runMultipartIdempotently = (
  path: CallPath,
  endpoint: Endpoint,
  input: CallInput,
): Effect.Effect<Answer, ApiError | PortError, Scope.Scope> =>
  Effect.gen(function* () {
    const { body, digest } = digestForm(input.body as MultipartBody)
    const remembering: Endpoint = {
      ...endpoint,
      plan: (call) =>
        Effect.map(endpoint.plan(call), (plan) => ({
          ...plan,
          run: Effect.map(plan.run, (reply) =>
            "json" in reply
              ? { ...reply, json: { digest: digest(), json: reply.json } satisfies RememberedReply }
              : reply,
          ),
        })),
    }
    const answer = yield* path.run(remembering, { ...input, body })
    const { reply } = answer
    const remembered = jsonOf(reply)
    if (!remembered) return answer
    if (reply.headers?.[replayed] !== undefined) {
      const { [replayed]: _, ...headers } = reply.headers
      yield* Effect.mapError(readThrough(body), (error) =>
        apiError(error.code, error.message, {
          param: error.param,
          headers: { ...headers, ...error.headers },
        }),
      )
      if (digest() !== remembered.digest)
        return yield* apiError(
          "conflict",
          "This Idempotency-Key came with another request before.",
          { param: "Idempotency-Key", headers },
        )
    }
    return {
      ...answer,
      reply: { status: reply.status, headers: reply.headers ?? {}, json: remembered.json },
    }
  })
