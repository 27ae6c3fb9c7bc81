import { type DestinationStream, destination, type Logger, pino, stdTimeFunctions } from "pino"
import type { EventName, Fields, Log } from "../../core/services/log.ts"
import { prettyLines } from "./pretty-lines.ts"
import { redact, redactText } from "./redact.ts"

export interface LogOptions {
  readonly level: "debug" | "info" | "warn" | "error" | "silent"
  /** Lines for people instead of JSON. */
  readonly pretty?: boolean
  /** `stdout` when absent. Anything with `write(text)` will do. */
  readonly destination?: "stdout" | "stderr" | DestinationStream
}

const streamOf = (target: LogOptions["destination"] = "stdout"): DestinationStream => {
  if (typeof target === "object") return target
  return destination(target === "stdout" ? 1 : 2)
}

const wrap = (logger: Logger): Log => {
  const at =
    (level: "debug" | "info" | "warn" | "error") =>
    (event: EventName, message: string, fields: Fields = {}): void => {
      if (logger.isLevelEnabled(level))
        logger[level]({ event, ...redact(fields) }, redactText(message))
    }
  return {
    debug: at("debug"),
    info: at("info"),
    warn: at("warn"),
    error: at("error"),
    with: (fields) => wrap(logger.child(redact(fields))),
  }
}

/** One JSON object a line: `{"level":"info","time":"2026-01-15T12:00:00.000Z","event":"model.ready","msg":"...", ...fields}`. */
export const makeLog = (options: LogOptions): Log => {
  const stream = streamOf(options.destination)
  const settings = {
    level: options.level,
    base: null,
    timestamp: stdTimeFunctions.isoTime,
    formatters: { level: (level: string) => ({ level }) },
  }
  return wrap(pino(settings, options.pretty ? prettyLines(stream) : stream))
}
