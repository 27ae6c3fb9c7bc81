import { Effect } from "effect"
import { type ApiError, apiError, isId, type PortError, type Tenant } from "../../core/index.ts"
import { makeDeliveryRows } from "./delivery-rows.ts"
import { bodyOf, enqueue } from "./emitter.ts"
import type { WebhookHouse } from "./house.ts"
import { makeRegistrationRows } from "./registration-rows.ts"
import { makeSecret } from "./signature.ts"
import { sendTicket, ticketOf } from "./ticket.ts"
import type { DeliveryRow, RegistrationRow } from "./to-reply.ts"
import type { CreateWebhook } from "./wire.ts"

export const maxWebhooks = 20
export const bothSignMs = 24 * 60 * 60_000

type Failure = ApiError | PortError
/** The only moment at which the secret itself is there. */
interface WithSecret {
  readonly row: RegistrationRow
  readonly secret: string
}

const missing = (what: string) => Effect.fail(apiError("not_found", `There is no such ${what}.`))

/** This tenant's webhook; those of others look like none. */
export const findWebhook = (
  house: WebhookHouse,
  tenant: Tenant,
  id: string,
): Effect.Effect<RegistrationRow, Failure> =>
  isId(id)
    ? Effect.flatMap(makeRegistrationRows(house.database).get(tenant, id), (row) =>
        row ? Effect.succeed(row) : missing("webhook"),
      )
    : missing("webhook")

export const createWebhook = (
  house: WebhookHouse,
  tenant: Tenant,
  wanted: CreateWebhook,
): Effect.Effect<WithSecret, Failure> =>
  house.database.transaction((tx) =>
    Effect.gen(function* () {
      const rows = makeRegistrationRows(house.database)
      if ((yield* rows.count(tenant, tx)) >= maxWebhooks)
        return yield* apiError(
          "conflict",
          `This account has ${maxWebhooks} webhooks, and more are not allowed: delete one first.`,
        )
      const secret = makeSecret()
      const { url, events, description } = wanted
      const row = {
        id: house.ids.make("wh-"),
        url,
        events,
        description: description ?? null,
        secret: house.secrets.seal(secret),
        created_at: new Date(house.clock.nowMs()),
      }
      return { row: yield* rows.insert(tenant, row, tx), secret }
    }),
  )

export const rotateSecret = (
  house: WebhookHouse,
  tenant: Tenant,
  id: string,
): Effect.Effect<WithSecret, Failure> =>
  Effect.gen(function* () {
    yield* findWebhook(house, tenant, id)
    const secret = makeSecret()
    const row = yield* makeRegistrationRows(house.database).rotate(
      tenant,
      id,
      house.secrets.seal(secret),
      new Date(house.clock.nowMs() + bothSignMs),
    )
    return row ? { row, secret } : yield* missing("webhook")
  })

/** What waits for a retry is given up. */
export const deleteWebhook = (
  house: WebhookHouse,
  tenant: Tenant,
  id: string,
): Effect.Effect<void, Failure> =>
  house.database.transaction((tx) =>
    Effect.gen(function* () {
      if (!isId(id) || !(yield* makeRegistrationRows(house.database).remove(tenant, id, tx)))
        return yield* missing("webhook")
      yield* makeDeliveryRows(house.database).giveUpAll(id, tx)
    }),
  )

export const testWebhook = (
  house: WebhookHouse,
  tenant: Tenant,
  id: string,
): Effect.Effect<DeliveryRow, Failure> =>
  Effect.gen(function* () {
    yield* findWebhook(house, tenant, id)
    const delivery = house.ids.make("whd-")
    const event = "webhook.test"
    const body = bodyOf(event, house.clock.nowMs(), { id: delivery, webhook_id: id })
    return yield* house.database.transaction((tx) =>
      enqueue(house, { id: delivery, webhook_id: id, event, body, once: true }, tx),
    )
  })

/** From whatever state it is in, a new round of attempts begins now. */
export const redeliver = (
  house: WebhookHouse,
  tenant: Tenant,
  id: string,
  delivery: string,
): Effect.Effect<DeliveryRow, Failure> =>
  Effect.gen(function* () {
    yield* findWebhook(house, tenant, id)
    return yield* house.database.transaction((tx) =>
      Effect.gen(function* () {
        const row = isId(delivery)
          ? yield* makeDeliveryRows(house.database).again(
              id,
              delivery,
              new Date(house.clock.nowMs()),
              tx,
            )
          : undefined
        if (!row) return yield* missing("delivery")
        yield* sendTicket(house.queue, ticketOf(row), 0, tx)
        return row
      }),
    )
  })
