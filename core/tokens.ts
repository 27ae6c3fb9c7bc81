import type { DependencyContainer, InjectionToken } from "tsyringe"
import type * as Kernel from "./index.ts"

/** A typed name in the container. `one`: two providers are refused at boot; `many`: all of them stand side by side. */
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
  deployment: token<Kernel.Deployment>(
    "deployment",
    "one",
    "Folders and address of this deployment.",
  ),
  log: token<Kernel.Log>("log", "one", "Structured log lines."),
  clock: token<Kernel.Clock>("clock", "one", "The time."),
  ids: token<Kernel.Ids>("ids", "one", "Fresh ids."),
  secrets: token<Kernel.Secrets>("secrets", "one", "Encrypts what must be readable again."),
  outbound: token<Kernel.Outbound>(
    "outbound",
    "one",
    "The one guarded way to URLs that customers give.",
  ),
  metrics: token<Kernel.Metrics>("metrics", "one", "Prometheus metrics."),
  workers: token<Kernel.Workers>(
    "workers",
    "one",
    "The pool of threads for tokenization and chunking.",
  ),
  catalogue: token<Kernel.Catalogue>(
    "catalogue",
    "one",
    "The models of the config file, and the open ones.",
  ),
  callPath: token<Kernel.CallPath>(
    "call-path",
    "one",
    "The one path of a call: authorize, decode, plan, admit, run, settle.",
  ),

  // -- what plugins provide
  database: token<Kernel.Database>("database", "one", "PostgreSQL."),
  identity: token<Kernel.Identity>("identity", "one", "Whose API key is it?"),
  sessions: token<Kernel.Identity>("sessions", "one", "Whose dashboard session is it?"),
  keyIssuer: token<Kernel.KeyIssuer>("key-issuer", "one", "Makes API keys from the command line."),
  firstAccount: token<Kernel.FirstAccount>(
    "first-account",
    "one",
    "The account that the first boot made.",
  ),
  idempotency: token<Kernel.Idempotency>(
    "idempotency",
    "one",
    "Replies remembered by Idempotency-Key.",
  ),
  billing: token<Kernel.Billing>("billing", "one", "Limits and money."),
  ledger: token<Kernel.Ledger>(
    "ledger",
    "one",
    "Proofs and sums of the ledger, for the command line.",
  ),
  signer: token<Kernel.Signer>("signer", "one", "Signs sessions and receipts."),
  mailer: token<Kernel.Mailer>("mailer", "one", "E-mail."),
  storage: token<Kernel.Storage>("storage", "one", "Blobs."),
  files: token<Kernel.Files>("files", "one", "The files of customers."),
  queue: token<Kernel.Queue>("queue", "one", "Background jobs."),
  webhook: token<Kernel.Webhook>("webhook", "one", "Events to customers."),
  schemaChecker: token<Kernel.SchemaChecker>(
    "schema-checker",
    "one",
    "Says what structured output keeps of a JSON Schema.",
  ),
  backends: token<Kernel.Backend>("backend", "many", "Opens models."),
  endpoints: token<Kernel.Endpoint>("endpoint", "many", "Routes of the API."),
  jobHandlers: token<Kernel.JobHandler<never>>("jobHandler", "many", "Kinds of background work."),
  consistencyChecks: token<Kernel.ConsistencyCheck>(
    "consistency-check",
    "many",
    "What `rakit fsck` compares.",
  ),
  healthChecks: token<Kernel.HealthCheck>("health-check", "many", "What /readyz asks."),
} as const

/** `resolve` with a typed token. */
export const resolve = <T>(container: DependencyContainer, token: Token<T>): T =>
  container.resolve(token.key)

/** The same for a token that a plugin names as `optional`: undefined where no plugin provides it. */
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
