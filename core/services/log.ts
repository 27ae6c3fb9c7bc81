export type Fields = Readonly<Record<string, unknown>>

/** Structured log lines. Never put a secret, a prompt or an answer into a field. */
export interface Log {
  debug(message: string, fields?: Fields): void
  info(message: string, fields?: Fields): void
  warn(message: string, fields?: Fields): void
  error(message: string, fields?: Fields): void
  with(fields: Fields): Log
}
