import type { EventName, Fields, Log } from "../../core/services/log.ts"

export interface LogLine {
  readonly level: "debug" | "info" | "warn" | "error"
  readonly event: EventName
  readonly message: string
  readonly fields: Fields
}

export interface FakeLog extends Log {
  readonly lines: readonly LogLine[]
}

/** A log that keeps its lines in memory. */
export const fakeLog = (lines: LogLine[] = [], base: Fields = {}): FakeLog => {
  const at =
    (level: LogLine["level"]) =>
    (event: EventName, message: string, fields: Fields = {}) =>
      void lines.push({ level, event, message, fields: { ...base, ...fields } })
  return {
    lines,
    debug: at("debug"),
    info: at("info"),
    warn: at("warn"),
    error: at("error"),
    with: (fields) => fakeLog(lines, { ...base, ...fields }),
  }
}
