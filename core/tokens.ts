import type { DependencyContainer, InjectionToken } from "tsyringe"
import type { CallPath } from "./call/contract.ts"
import type { Billing } from "./ports/billing.ts"
import type { ConsistencyCheck } from "./ports/consistency.ts"
import type { Database } from "./ports/database.ts"
import type { Endpoint } from "./ports/endpoint.ts"
import type { ExecutionProvider } from "./ports/execution-provider.ts"
import type { Files } from "./ports/files.ts"
import type { HealthCheck } from "./ports/health.ts"
import type { Idempotency } from "./ports/idempotency.ts"
import type { FirstAccount, Identity, KeyIssuer } from "./ports/identity.ts"
import type { ImageSafety } from "./ports/image.ts"
import type { Ledger } from "./ports/ledger.ts"
import type { Mailer } from "./ports/mailer.ts"
import type { Backend } from "./ports/model.ts"
import type { AdapterOffer, ModelOffer } from "./ports/model-offer.ts"
import type { JobHandler, Queue } from "./ports/queue.ts"
import type { SchemaChecker } from "./ports/schema-checker.ts"
import type { Signer } from "./ports/signer.ts"
import type { Storage } from "./ports/storage.ts"
import type { Webhook } from "./ports/webhook.ts"
import type { Catalogue } from "./services/catalogue.ts"
import type { Clock } from "./services/clock.ts"
import type { Deployment } from "./services/deployment.ts"
import type { Ids } from "./services/ids.ts"
import type { Log } from "./services/log.ts"
import type { Metrics } from "./services/metrics.ts"
import type { Outbound } from "./services/outbound.ts"
import type { Secrets } from "./services/secrets.ts"
import type { Workers } from "./services/workers.ts"

/**
 * A typed name in the container. `one`: two providers are refused at boot; `many`: all of them
 * stand side by side.
 */
export interface Token<T> {
  readonly name: string
  readonly about: string
  readonly arity: "one" | "many"
  readonly key: InjectionToken<T>
}

// Symbol.for: a plugin that comes with its own copy of the kernel still means the same service
const token = <T>(name: string, arity: "one" | "many", about: string): Token<T> => ({
  name,
  about,
  arity,
  key: Symbol.for(`rakit/${name}`),
})

/** The one list of services and ports. */
export const Tokens = {
  // -- kernel services, lent to every plugin
  deployment: token<Deployment>("deployment", "one", "Folders and address of this deployment."),
  log: token<Log>("log", "one", "Structured log lines."),
  clock: token<Clock>("clock", "one", "The time."),
  ids: token<Ids>("ids", "one", "Fresh ids."),
  secrets: token<Secrets>("secrets", "one", "Encrypts what must be readable again."),
  outbound: token<Outbound>("outbound", "one", "The one guarded way to URLs that customers give."),
  metrics: token<Metrics>("metrics", "one", "Prometheus metrics."),
  workers: token<Workers>("workers", "one", "The pool of threads for tokenization and chunking."),
  catalogue: token<Catalogue>("catalogue", "one", "The models served, and the open ones."),
  callPath: token<CallPath>("call-path", "one", "The one path of a call, from key to settlement."),

  // -- what plugins provide
  database: token<Database>("database", "one", "PostgreSQL."),
  identity: token<Identity>("identity", "one", "Whose API key is it?"),
  sessions: token<Identity>("sessions", "one", "Whose dashboard session is it?"),
  keyIssuer: token<KeyIssuer>("key-issuer", "one", "Makes API keys from the command line."),
  firstAccount: token<FirstAccount>("first-account", "one", "The first boot's account."),
  idempotency: token<Idempotency>("idempotency", "one", "Replies remembered by Idempotency-Key."),
  billing: token<Billing>("billing", "one", "Limits and money."),
  ledger: token<Ledger>("ledger", "one", "Proofs and sums of the ledger, for the command line."),
  signer: token<Signer>("signer", "one", "Signs sessions and receipts."),
  mailer: token<Mailer>("mailer", "one", "E-mail."),
  storage: token<Storage>("storage", "one", "Blobs."),
  files: token<Files>("files", "one", "The files of customers."),
  queue: token<Queue>("queue", "one", "Background jobs."),
  webhook: token<Webhook>("webhook", "one", "Events to customers."),
  schemaChecker: token<SchemaChecker>(
    "schema-checker",
    "one",
    "Says what structured output keeps of a JSON Schema.",
  ),
  imageSafety: token<ImageSafety>("image-safety", "one", "What the image endpoints refuse."),
  backends: token<Backend>("backend", "many", "Opens models."),
  executionProviders: token<ExecutionProvider>(
    "execution-provider",
    "many",
    "Runs engines on GPUs.",
  ),
  models: token<ModelOffer>("model", "many", "Models beside those of the config file."),
  adapters: token<AdapterOffer>("adapter", "many", "LoRAs of models that others bring."),
  endpoints: token<Endpoint>("endpoint", "many", "Routes of the API."),
  jobHandlers: token<JobHandler<never>>("job-handler", "many", "Kinds of background work."),
  consistencyChecks: token<ConsistencyCheck>("consistency-check", "many", "For `rakit fsck`."),
  healthChecks: token<HealthCheck>("health-check", "many", "What /readyz asks."),
} as const

/** `resolve` with a typed token. */
export const resolve = <T>(container: DependencyContainer, token: Token<T>): T =>
  container.resolve(token.key)

/**
 * The same for a token that a plugin names as `optional`: undefined where no plugin provides it.
 */
export const resolveOptional = <T>(
  container: DependencyContainer,
  token: Token<T>,
): T | undefined =>
  container.isRegistered(token.key, true) ? container.resolve(token.key) : undefined

/** All providers of a `many` token, in the order of the plugins; none is fine. */
export const resolveAll = <T>(container: DependencyContainer, token: Token<T>): readonly T[] =>
  container.isRegistered(token.key, true) ? container.resolveAll(token.key) : []

export const provide = <T>(container: DependencyContainer, token: Token<T>, value: T): void => {
  container.registerInstance(token.key, value)
}
