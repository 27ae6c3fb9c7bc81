import { Effect, Schema } from "effect"
import type {
  Billing,
  Database,
  Files,
  Idempotency,
  Identity,
  Mailer,
  ModelPlan,
  Queue,
  Storage,
  Task,
  Webhook,
} from "../../core/index.ts"

const count = (fallback: number) =>
  Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 1_000_000_000 }))
    .annotate({ default: fallback })
    .pipe(Schema.withDecodingDefaultKey(Effect.succeed(fallback)))

type Operations = {
  readonly storage: keyof Storage
  readonly model: "open" | keyof Task<never, never> | keyof Pick<ModelPlan<never>, "run">
  readonly queue: keyof Queue
  readonly database: keyof Database
  readonly mailer: keyof Mailer
  readonly webhook: keyof Webhook
  readonly billing: keyof Billing
  readonly idempotency: keyof Idempotency
  readonly identity: keyof Identity
  readonly files: keyof Files
}
export type Port = keyof Operations | "health"

/** The operations of each port that fail or end in an error; those of `health` are its checks. */
export const operations: {
  readonly [P in keyof Operations]: readonly Operations[P][]
} = {
  storage: ["put", "get", "stat", "remove", "list", "link"],
  model: ["open", "plan", "run"],
  queue: ["send", "held", "consume"],
  database: ["run", "transaction", "session", "migrate"],
  mailer: ["send"],
  webhook: ["emit"],
  billing: ["admit", "settle", "voidChildren", "balance", "spentThisMonth", "adjust"],
  idempotency: ["begin", "finish", "forget"],
  identity: ["authenticate", "resume", "denied"],
  files: ["find", "knows", "read", "create", "mark", "remove"],
}
export const ports = [...(Object.keys(operations) as (keyof Operations)[]), "health"] as const

/** A misspelt one would never have its fault, and a drill that shows nothing looks like a success. */
const isOperation = ({ port, operation }: { readonly port: Port; readonly operation: string }) => {
  const known: readonly string[] | undefined = port === "health" ? undefined : operations[port]
  return (
    operation === "" ||
    known === undefined ||
    known.includes(operation) ||
    `the port ${port} has no operation '${operation}', but ${known.join(", ")}`
  )
}

/** What is done to one operation of a port, and when. */
export const Fault = Schema.Struct({
  port: Schema.Literals(ports),
  /**
   * As the port names it: `put`, `get`, `run`, `send` ...; of `health` a check, as `/readyz` names
   * it. Empty: each of them.
   */
  operation: Schema.String.pipe(Schema.withDecodingDefaultKey(Effect.succeed(""))),
  /**
   * slow: it waits. fail: it fails. full: no space is left. disconnect: what is behind the port
   * can't be reached. crash: the adapter throws. exit: this process ends as by `kill -9`.
   */
  fault: Schema.Literals(["slow", "fail", "full", "disconnect", "crash", "exit"]),
  /** How likely a call has it, 0 to 1. */
  probability: Schema.Finite.check(Schema.isBetween({ minimum: 0, maximum: 1 }))
    .annotate({ default: 1 })
    .pipe(Schema.withDecodingDefaultKey(Effect.succeed(1))),
  /** So many calls of the operation pass before the first fault. */
  after: count(0),
  /** So many faults, and no more; 0: no end. */
  times: count(0),
  /** How long `slow` waits: before the call, or before each item of a stream. */
  delayMs: count(1_000),
  /** For streams: so many items pass before the stream fails. */
  items: count(0),
}).check(Schema.makeFilter(isOperation))
export type Fault = typeof Fault.Type

export const Settings = Schema.Struct({
  /** The same seed and the same calls have the same faults. */
  seed: count(1),
  /** Lets it start where NODE_ENV is `production`. */
  iKnow: Schema.Boolean.annotate({ default: false }).pipe(
    Schema.withDecodingDefaultKey(Effect.succeed(false)),
  ),
  /** By how much the clock of this process is ahead, in ms; may be negative. */
  clockSkewMs: Schema.Int.annotate({ default: 0 }).pipe(
    Schema.withDecodingDefaultKey(Effect.succeed(0)),
  ),
  /** Each call has the first of these that is due. */
  faults: Schema.Array(Fault)
    .check(Schema.isMaxLength(100))
    .pipe(Schema.withDecodingDefaultKey(Effect.succeed([]))),
})
export type Settings = typeof Settings.Type
