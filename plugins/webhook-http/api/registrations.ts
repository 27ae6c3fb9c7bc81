import { Effect } from "effect"
import { type ApiError, apiError, isId, type PortError, type Tenant } from "../../../core/index.ts"
import { nextAttemptOf, scheduleAttempt } from "../delivery/delivery-attempt.ts"
import { bodyOf, enqueue } from "../delivery/emitter.ts"
import { makeSecret } from "../delivery/signature.ts"
import type { WebhookDeps } from "../deps.ts"
import { makeDeliveryRows } from "../rows/delivery-rows.ts"
import { makeRegistrationRows } from "../rows/registration-rows.ts"
import type { DeliveryRow, RegistrationRow } from "../rows/tables.ts"
import type { CreateWebhook } from "./schema.ts"

export const maxWebhooks = 20
export const bothSignMs = 24 * 60 * 60_000

type Failure = ApiError | PortError
/** The only moment at which the plain secret is known. */
interface WithSecret {
  readonly row: RegistrationRow
  readonly secret: string
}

const missing = (what: string) => Effect.fail(apiError("not_found", `There is no such ${what}.`))

/** Fails with `not_found` for another tenant's webhook, too. */
export const findWebhook = (
  deps: WebhookDeps,
  tenant: Tenant,
  id: string,
): Effect.Effect<RegistrationRow, Failure> =>
  isId(id)
    ? Effect.flatMap(makeRegistrationRows(deps.database).find(tenant, id), (row) =>
        row ? Effect.succeed(row) : missing("webhook"),
      )
    : missing("webhook")

export const createWebhook = (
  deps: WebhookDeps,
  tenant: Tenant,
  request: CreateWebhook,
): Effect.Effect<WithSecret, Failure> =>
  deps.database.transaction((tx) =>
    Effect.gen(function* () {
      const rows = makeRegistrationRows(deps.database)
      if ((yield* rows.count(tenant, tx)) >= maxWebhooks)
        return yield* apiError(
          "conflict",
          `This account has ${maxWebhooks} webhooks, and more are not allowed: delete one first.`,
        )
      const secret = makeSecret()
      const { url, events, description } = request
      const row = {
        id: deps.ids.make("wh-"),
        url,
        events,
        description: description ?? null,
        secret: deps.secrets.encrypt(secret),
        created_at: new Date(deps.clock.nowMs()),
      }
      return { row: yield* rows.insert(tenant, row, tx), secret }
    }),
  )

export const rotateSecret = (
  deps: WebhookDeps,
  tenant: Tenant,
  id: string,
): Effect.Effect<WithSecret, Failure> =>
  Effect.gen(function* () {
    yield* findWebhook(deps, tenant, id)
    const secret = makeSecret()
    const row = yield* makeRegistrationRows(deps.database).rotate(
      tenant,
      id,
      deps.secrets.encrypt(secret),
      new Date(deps.clock.nowMs() + bothSignMs),
    )
    return row ? { row, secret } : yield* missing("webhook")
  })

/** Gives up the deliveries that wait for a retry. */
export const deleteWebhook = (
  deps: WebhookDeps,
  tenant: Tenant,
  id: string,
): Effect.Effect<void, Failure> =>
  deps.database.transaction((tx) =>
    Effect.gen(function* () {
      if (!isId(id) || !(yield* makeRegistrationRows(deps.database).remove(tenant, id, tx)))
        return yield* missing("webhook")
      yield* makeDeliveryRows(deps.database).giveUpAll(id, tx)
    }),
  )

export const testWebhook = (
  deps: WebhookDeps,
  tenant: Tenant,
  id: string,
): Effect.Effect<DeliveryRow, Failure> =>
  Effect.gen(function* () {
    yield* findWebhook(deps, tenant, id)
    const delivery = deps.ids.make("whd-")
    const event = "webhook.test"
    const body = bodyOf(event, deps.clock.nowMs(), { id: delivery, webhook_id: id })
    return yield* deps.database.transaction((tx) =>
      enqueue(deps, { id: delivery, webhook_id: id, event, body, once: true }, tx),
    )
  })

/** Fails with `not_found` where there is no such webhook, or no such delivery of it. */
export const findDelivery = (
  deps: WebhookDeps,
  tenant: Tenant,
  id: string,
  delivery: string,
): Effect.Effect<void, Failure> =>
  Effect.gen(function* () {
    yield* findWebhook(deps, tenant, id)
    const seq = isId(delivery)
      ? yield* makeDeliveryRows(deps.database).seqOf(id, delivery)
      : undefined
    if (seq === undefined) return yield* missing("delivery")
  })

/** Begins a new round of attempts now, whatever the delivery's state. */
export const redeliver = (
  deps: WebhookDeps,
  tenant: Tenant,
  id: string,
  delivery: string,
): Effect.Effect<DeliveryRow, Failure> =>
  Effect.gen(function* () {
    yield* findWebhook(deps, tenant, id)
    return yield* deps.database.transaction((tx) =>
      Effect.gen(function* () {
        const row = isId(delivery)
          ? yield* makeDeliveryRows(deps.database).beginRound(
              id,
              delivery,
              new Date(deps.clock.nowMs()),
              tx,
            )
          : undefined
        if (!row) return yield* missing("delivery")
        yield* scheduleAttempt(deps.queue, nextAttemptOf(row), 0, tx)
        return row
      }),
    )
  })
