export type Fields = Readonly<Record<string, unknown>>

/**
 * `<noun>.<what_happened>`, in lower case: the name that alerts match. It never changes; the
 * sentence beside it may.
 */
export type EventName = `${string}.${string}`

/** Structured log lines. Never put a secret, a prompt or an answer into a field. */
export interface Log {
  debug(event: EventName, message: string, fields?: Fields): void
  info(event: EventName, message: string, fields?: Fields): void
  warn(event: EventName, message: string, fields?: Fields): void
  error(event: EventName, message: string, fields?: Fields): void
  with(fields: Fields): Log
}
