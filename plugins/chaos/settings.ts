import { Schema } from "effect"
import {
  type Billing,
  type Database,
  type Files,
  type Idempotency,
  type Identity,
  type Mailer,
  type ModelPlan,
  type Queue,
  type Storage,
  setting,
  type Task,
  type Webhook,
} from "../../core/index.ts"

const count = (fallback: number, description: string) =>
  setting(
    Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 1_000_000_000 })),
    fallback,
    description,
  )

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
  port: Schema.Literals(ports).annotate({
    description: "The port whose operation has the fault; `health`: the checks of `/readyz`.",
  }),
  operation: setting(
    Schema.String,
    "",
    "As the port names it: `put`, `get`, `run`, `send` ...; of `health` a check, as `/readyz` names it. Empty: each of them.",
  ),
  fault: Schema.Literals(["slow", "fail", "full", "disconnect", "crash", "exit"]).annotate({
    description:
      "slow: it waits. fail: it fails. full: no space is left. disconnect: what is behind the port can't be reached. crash: the adapter throws. exit: this process ends as by `kill -9`.",
  }),
  probability: setting(
    Schema.Finite.check(Schema.isBetween({ minimum: 0, maximum: 1 })),
    1,
    "How likely a call has it, 0 to 1.",
  ),
  after: count(0, "So many calls of the operation pass before the first fault."),
  times: count(0, "So many faults, and no more; 0: no end."),
  delayMs: count(1_000, "How long `slow` waits: before the call, or before each item of a stream."),
  items: count(0, "For streams: so many items pass before the stream fails."),
}).check(Schema.makeFilter(isOperation))
export type Fault = typeof Fault.Type

export const Settings = Schema.Struct({
  seed: count(1, "The same seed and the same calls have the same faults."),
  iKnow: setting(Schema.Boolean, false, "Lets it start where NODE_ENV is `production`."),
  clockSkewMs: setting(
    Schema.Int,
    0,
    "By how much the clock of this process is ahead, in ms; may be negative.",
  ),
  faults: setting(
    Schema.Array(Fault).check(Schema.isMaxLength(100)),
    [],
    "Each call has the first of these that is due.",
  ),
})
export type Settings = typeof Settings.Type
