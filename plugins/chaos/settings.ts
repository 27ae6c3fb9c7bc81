import { Effect, Schema } from "effect"

const count = (fallback: number) =>
  Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 1_000_000_000 }))
    .annotate({ default: fallback })
    .pipe(Schema.withDecodingDefaultKey(Effect.succeed(fallback)))

export const ports = [
  "storage",
  "model",
  "queue",
  "database",
  "mailer",
  "webhook",
  "billing",
  "idempotency",
  "identity",
  "files",
] as const
export type Port = (typeof ports)[number]

/** What is done to one operation of a port, and when. */
export const Fault = Schema.Struct({
  port: Schema.Literals(ports),
  /** As the port names it: `put`, `get`, `run`, `send` ... Empty: each of them. */
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
})
export type Fault = typeof Fault.Type

export const Settings = Schema.Struct({
  /** The same seed and the same calls have the same faults. */
  seed: count(1),
  /** Lets it start where NODE_ENV is `production`. */
  iKnow: Schema.Boolean.annotate({ default: false }).pipe(
    Schema.withDecodingDefaultKey(Effect.succeed(false)),
  ),
  /** By how much the clock of the plugins is ahead, in ms; may be negative. */
  clockSkewMs: Schema.Int.annotate({ default: 0 }).pipe(
    Schema.withDecodingDefaultKey(Effect.succeed(0)),
  ),
  /** Each call has the first of these that is due. */
  faults: Schema.Array(Fault)
    .check(Schema.isMaxLength(100))
    .pipe(Schema.withDecodingDefaultKey(Effect.succeed([]))),
})
export type Settings = typeof Settings.Type
