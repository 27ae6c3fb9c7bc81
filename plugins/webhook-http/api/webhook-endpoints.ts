import { Effect, type Scope } from "effect"
import {
  type ApiError,
  apiError,
  type Call,
  defineEndpoint,
  type Endpoint,
  firstOf,
  freePlan,
  type Json,
  listSchema,
  megabyte,
  PageQuery,
  type Plan,
  type PortError,
  placeOf,
  type Reply,
  type Strings,
  type Tenant,
  toList,
  type WhenStarted,
} from "../../../core/index.ts"
import type { WebhookDeps } from "../deps.ts"
import { makeDeliveryRows } from "../rows/delivery-rows.ts"
import { makeRegistrationRows } from "../rows/registration-rows.ts"
import { attemptsOf, type DeliveryRow, type RegistrationRow } from "../rows/tables.ts"
import {
  createWebhook,
  deleteWebhook,
  findDelivery,
  findWebhook,
  redeliver,
  rotateSecret,
  testWebhook,
} from "./registrations.ts"
import { CreateWebhook, DeletedWebhook, Delivery, NewWebhookReply, WebhookReply } from "./schema.ts"

const seconds = (at: Date): number => Math.floor(at.getTime() / 1000)
const secondsOrNull = (at: Date | null): number | null => at && seconds(at)

const toWebhook = (row: RegistrationRow): WebhookReply => ({
  id: row.id,
  object: "webhook",
  url: row.url,
  events: row.events,
  description: row.description,
  status: row.status,
  last_delivery_at: secondsOrNull(row.last_delivery_at),
  last_error: row.last_error,
  created_at: seconds(row.created_at),
})

const toDelivery = (row: DeliveryRow): Delivery => ({
  id: row.id,
  object: "webhook.delivery",
  event: row.event,
  status: row.state,
  request_body: row.body,
  attempts: attemptsOf(row),
  next_attempt_at: secondsOrNull(row.next_attempt_at),
})

const common = { access: "key", maxBodyBytes: megabyte } as const
const item = "/v1/webhooks/{id}"

/** Headers of replies that show a secret. */
const onlyOnce = { "cache-control": "no-store" }

type Answer = Effect.Effect<Reply, ApiError | PortError, Scope.Scope>

type Check = (deps: WebhookDeps, tenant: Tenant) => Effect.Effect<boolean, ApiError | PortError>

/** For dry runs of what is done with one webhook. */
const isThere =
  (call: Call<Json>): Check =>
  (deps, tenant) =>
    Effect.as(findWebhook(deps, tenant, call.params.id ?? ""), true)

/** Costs nothing. */
const plan = <Body>(
  started: WhenStarted<WebhookDeps>,
  call: Call<Body>,
  work: (deps: WebhookDeps, tenant: Tenant) => Answer,
  check?: Check,
): Effect.Effect<Plan, ApiError> =>
  Effect.flatMap(started, (deps) =>
    call.caller
      ? Effect.succeed(freePlan(work(deps, call.caller.tenant), check?.(deps, call.caller.tenant)))
      : Effect.fail(apiError("authentication_error")),
  )

const ok = (json: Json, headers: Strings = {}): Reply => ({ status: 200, headers, json })

const list = (started: WhenStarted<WebhookDeps>) =>
  defineEndpoint({
    ...common,
    id: "webhooks.list",
    summary: "The webhooks, newest first.",
    method: "GET",
    path: "/v1/webhooks",
    body: "none",
    reply: listSchema(WebhookReply, "WebhookList"),
    query: PageQuery,
    plan: (call) =>
      plan(started, call, (deps, tenant) =>
        Effect.gen(function* () {
          const { limit, after } = call.query
          const rows = makeRegistrationRows(deps.database)
          const before = yield* placeOf(after, (id) =>
            Effect.map(rows.find(tenant, id), (row) => row?.seq),
          )
          const found = firstOf(yield* rows.list(tenant, limit + 1, before), call.query)
          return ok(toList(found.rows.map(toWebhook), found.hasMore))
        }),
      ),
  })

/**
 * Checks the URL itself; the addresses that its name resolves to are checked with every delivery.
 */
const checkUrl = (started: WhenStarted<WebhookDeps>, url: string): Effect.Effect<void, ApiError> =>
  Effect.flatMap(started, ({ outbound }) => {
    const refusal = outbound.refusal(url)
    return refusal === undefined
      ? Effect.void
      : Effect.fail(apiError("invalid_request_error", `url: ${refusal}`, { param: "url" }))
  })

const create = (started: WhenStarted<WebhookDeps>) =>
  defineEndpoint({
    ...common,
    id: "webhooks.create",
    summary: "Registers a webhook, and shows its secret this once.",
    method: "POST",
    path: "/v1/webhooks",
    body: CreateWebhook,
    reply: NewWebhookReply,
    creates: true,
    plan: (call) =>
      Effect.andThen(
        checkUrl(started, call.body.url),
        plan(started, call, (deps, tenant) =>
          Effect.map(createWebhook(deps, tenant, call.body), ({ row, secret }) =>
            ok({ ...toWebhook(row), secret }, onlyOnce),
          ),
        ),
      ),
  })

const get = (started: WhenStarted<WebhookDeps>) =>
  defineEndpoint({
    ...common,
    id: "webhooks.get",
    summary: "One webhook.",
    method: "GET",
    path: item,
    body: "none",
    reply: WebhookReply,
    plan: (call) =>
      plan(
        started,
        call,
        (deps, tenant) =>
          Effect.map(findWebhook(deps, tenant, call.params.id ?? ""), (row) => ok(toWebhook(row))),
        isThere(call),
      ),
  })

const remove = (started: WhenStarted<WebhookDeps>) =>
  defineEndpoint({
    ...common,
    id: "webhooks.delete",
    summary: "Deletes a webhook; what waits for a retry is given up.",
    method: "DELETE",
    path: item,
    body: "none",
    reply: DeletedWebhook,
    plan: (call) => {
      const { id = "" } = call.params
      return plan(
        started,
        call,
        (deps, tenant) =>
          Effect.as(deleteWebhook(deps, tenant, id), ok({ id, object: "webhook", deleted: true })),
        isThere(call),
      )
    },
  })

const rotate = (started: WhenStarted<WebhookDeps>) =>
  defineEndpoint({
    ...common,
    id: "webhooks.rotate",
    summary: "Gives a new secret; for 24 hours the old one signs too.",
    method: "POST",
    path: `${item}/rotate`,
    body: "none",
    reply: NewWebhookReply,
    creates: true,
    plan: (call) =>
      plan(
        started,
        call,
        (deps, tenant) =>
          Effect.map(rotateSecret(deps, tenant, call.params.id ?? ""), ({ row, secret }) =>
            ok({ ...toWebhook(row), secret }, onlyOnce),
          ),
        isThere(call),
      ),
  })

const test = (started: WhenStarted<WebhookDeps>) =>
  defineEndpoint({
    ...common,
    id: "webhooks.test",
    summary: "Sends the event webhook.test, once, at once.",
    method: "POST",
    path: `${item}/test`,
    body: "none",
    reply: Delivery,
    creates: true,
    plan: (call) =>
      plan(
        started,
        call,
        (deps, tenant) =>
          Effect.map(testWebhook(deps, tenant, call.params.id ?? ""), (row) => ok(toDelivery(row))),
        isThere(call),
      ),
  })

const listDeliveries = (started: WhenStarted<WebhookDeps>) =>
  defineEndpoint({
    ...common,
    id: "webhooks.deliveries.list",
    summary: "What was sent to a webhook, newest first, with the exact bodies.",
    method: "GET",
    path: `${item}/deliveries`,
    body: "none",
    reply: listSchema(Delivery, "WebhookDeliveryList"),
    query: PageQuery,
    plan: (call) =>
      plan(
        started,
        call,
        (deps, tenant) =>
          Effect.gen(function* () {
            const { limit, after } = call.query
            const { id } = yield* findWebhook(deps, tenant, call.params.id ?? "")
            const rows = makeDeliveryRows(deps.database)
            const before = yield* placeOf(after, (delivery) => rows.seqOf(id, delivery))
            const found = firstOf(yield* rows.list(id, limit + 1, before), call.query)
            return ok(toList(found.rows.map(toDelivery), found.hasMore))
          }),
        isThere(call),
      ),
  })

const again = (started: WhenStarted<WebhookDeps>) =>
  defineEndpoint({
    ...common,
    id: "webhooks.deliveries.redeliver",
    summary: "Sends a delivery again, also after a success.",
    method: "POST",
    path: `${item}/deliveries/{delivery_id}/redeliver`,
    body: "none",
    reply: Delivery,
    creates: true,
    plan: (call) => {
      const { id = "", delivery_id = "" } = call.params
      return plan(
        started,
        call,
        (deps, tenant) =>
          Effect.map(redeliver(deps, tenant, id, delivery_id), (row) => ok(toDelivery(row))),
        (deps, tenant) => Effect.as(findDelivery(deps, tenant, id, delivery_id), true),
      )
    },
  })

/** Everything under `/v1/webhooks`. */
export const webhookEndpoints = (started: WhenStarted<WebhookDeps>): readonly Endpoint[] => [
  list(started),
  create(started),
  get(started),
  remove(started),
  rotate(started),
  test(started),
  listDeliveries(started),
  again(started),
]
