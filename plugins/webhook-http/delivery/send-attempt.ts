import { Effect } from "effect"
import { PortError } from "../../../core/index.ts"
import type { WebhookDeps } from "../deps.ts"
import type { AttemptRecord, DeliveryRow, RegistrationRow } from "../rows/tables.ts"
import { headersOf } from "./signature.ts"

export const timeoutMs = 10_000
export const maxResponseBytes = 4_096

export interface EndedAttempt {
  readonly attempt: AttemptRecord
  readonly endedMs: number
}

type Deps = Pick<WebhookDeps, "clock" | "outbound" | "secrets" | "settings">

/**
 * The secrets that sign now: the new one, and for a day after a rotation the old one, too.
 * Undefined: they cannot be decrypted.
 */
const secretsOf = (
  { secrets }: Deps,
  row: RegistrationRow,
  nowMs: number,
): readonly string[] | undefined => {
  const secret = secrets.decrypt(row.secret)
  const isOldValid =
    row.old_secret !== null &&
    row.old_secret_until !== null &&
    nowMs < row.old_secret_until.getTime()
  const old = isOldValid ? secrets.decrypt(row.old_secret ?? "") : undefined
  return secret === undefined ? undefined : [secret, ...(old === undefined ? [] : [old])]
}

const cannotDecrypt = new PortError({
  port: "webhook",
  message:
    "a webhook's secret was encrypted by a server with another secret; give all servers the same RAKIT_SECRET_KEY",
})

const errorOf = (status: number): string | null => {
  if (status >= 200 && status < 300) return null
  return status >= 300 && status < 400
    ? `HTTP ${status} (redirects are not followed)`
    : `HTTP ${status}`
}

/** PostgreSQL's text cannot hold NUL. */
const textOf = (body: Uint8Array): string =>
  Buffer.from(body).toString("utf8").replaceAll("\0", "\ufffd")

/** Sends the delivery once. An error of the receiver is an outcome, not a failure. */
export const sendAttempt = (
  deps: Deps,
  row: RegistrationRow,
  delivery: DeliveryRow,
): Effect.Effect<EndedAttempt, PortError> =>
  Effect.suspend(() => {
    const { clock, outbound, settings } = deps
    const startMs = clock.nowMs()
    const beganMs = clock.monotonicMs()
    const seconds = Math.floor(startMs / 1000)
    const secrets = secretsOf(deps, row, startMs)
    if (!secrets) return Effect.fail(cannotDecrypt)
    const ended = (
      status_code: number | null,
      error: string | null,
      response_body: string | null,
    ): EndedAttempt => ({
      attempt: {
        at: seconds,
        status_code,
        error,
        duration_ms: Math.round(clock.monotonicMs() - beganMs),
        response_body,
      },
      endedMs: clock.nowMs(),
    })
    const headers = headersOf(settings.style, {
      id: delivery.id,
      event: delivery.event,
      body: delivery.body,
      seconds,
      secrets,
    })
    return outbound
      .send({
        method: "POST",
        url: row.url,
        headers,
        body: delivery.body,
        timeoutMs,
        maxBytes: maxResponseBytes,
      })
      .pipe(
        Effect.map(({ status, body }) => ended(status, errorOf(status), textOf(body))),
        Effect.catch(({ message }) => Effect.sync(() => ended(null, message, null))),
      )
  })
