import { hash } from "node:crypto"
import { Cause, Effect, type Scope } from "effect"
import type { Caller } from "../caller.ts"
import { type ApiError, apiError, type PortError } from "../errors.ts"
import type { Endpoint, Reply } from "../ports/endpoint.ts"
import type { Idempotency } from "../ports/idempotency.ts"
import type { Log } from "../services/log.ts"
import type { CallInput } from "./contract.ts"

/** Larger replies are not stored; their keys may be used again. */
const maxStoredCharacters = 8 * 2 ** 20

/** A streamed body is not known yet: its reader compares the digest. */
export const fingerprintOf = (
  endpoint: Endpoint,
  { params = {}, body, bodyDigest }: Pick<CallInput, "params" | "body" | "bodyDigest">,
): string => {
  const content = endpoint.body === "multipart" ? null : (bodyDigest ?? body ?? null)
  return hash("sha256", JSON.stringify([endpoint.id, params, content]), "base64")
}

const checkKey = (key: string) =>
  /^[\x21-\x7e]{1,255}$/.test(key)
    ? Effect.void
    : Effect.fail(
        apiError(
          "invalid_request_error",
          "Idempotency-Key must be 1 to 255 visible ASCII characters.",
          { param: "Idempotency-Key" },
        ),
      )

const conflict = (message: string, retryAfterMs?: number): ApiError =>
  apiError("conflict", message, { param: "Idempotency-Key", retryAfterMs })

/** The call is settled: failing to remember its reply must not turn it into an error. */
const remember = (store: Idempotency, log: Log, caller: Caller, key: string, reply: Reply) => {
  const kept = "json" in reply && JSON.stringify(reply.json).length <= maxStoredCharacters
  const write = kept
    ? store.finish(caller.tenant, key, {
        status: reply.status,
        json: reply.json,
        callId: reply.headers?.["x-call-id"],
      })
    : store.forget(caller.tenant, key)
  // a store that throws, too
  return Effect.catchCause(write, (cause) =>
    Effect.sync(() =>
      log.error("idempotency.reply_not_stored", "a reply could not be remembered", {
        reason: String(Cause.squash(cause)),
      }),
    ),
  )
}

type OnceOnly = {
  readonly store: Idempotency
  readonly log: Log
  readonly caller: Caller
  readonly key: string
  readonly fingerprint: string
}

/**
 * Runs `work` once for a key; it calls `settled` when its answer is paid for. A second request with
 * the key gets the first one's reply, another body under it 409. The 409 while the first one runs
 * says in `Retry-After` when its lease ends: a retry at that time runs if the server of the first
 * one was killed. A stream holds the key while it runs, and is not remembered.
 */
export const idempotently = <A extends { readonly reply: Reply }, E, R>(
  { store, log, caller, key, fingerprint }: OnceOnly,
  replay: (reply: Reply) => Effect.Effect<A, E, R>,
  work: (settled: (answer: A) => void) => Effect.Effect<A, E, R>,
): Effect.Effect<A, E | ApiError | PortError, R | Scope.Scope> =>
  // a caller that leaves between settlement and memory would pay again for its retry
  Effect.uninterruptibleMask((restore) =>
    Effect.gen(function* () {
      yield* checkKey(key)
      const found = yield* store.begin(caller.tenant, key, fingerprint)
      if (found.state === "done") {
        const { status, json, callId } = found.reply
        return yield* replay({
          status,
          json,
          headers: {
            "idempotent-replayed": "true",
            ...(callId !== undefined && { "x-call-id": callId }),
          },
        })
      }
      if (found.state === "mismatch")
        return yield* conflict("This Idempotency-Key came with another request before.")
      if (found.state === "running")
        return yield* conflict(
          "The first request with this Idempotency-Key is still running.",
          found.leaseLeftMs,
        )
      const forget = Effect.ignore(store.forget(caller.tenant, key))
      const keep = ({ reply }: A) => remember(store, log, caller, key, reply)
      const paidFor: A[] = []
      return yield* restore(work((answer) => void paidFor.push(answer))).pipe(
        Effect.onError(() => (paidFor[0] ? keep(paidFor[0]) : forget)),
        Effect.tap((answer) =>
          "events" in answer.reply ? Effect.addFinalizer(() => forget) : keep(answer),
        ),
      )
    }),
  )
