import { type DestinationStream, destination, type Logger, pino, stdTimeFunctions } from "pino"
import type { EventName, Fields, Log } from "../../core/services/log.ts"
import { redact, redactText } from "./redact.ts"

export interface LogOptions {
  readonly level: "debug" | "info" | "warn" | "error" | "silent"
  /** Lines for people instead of JSON. */
  readonly pretty?: boolean
  /** `stdout` by default; or anything with `write(text)`. */
  readonly destination?: "stdout" | "stderr" | DestinationStream
}

const shownValue = (value: unknown): string =>
  typeof value === "string" && /^[^\s"=]+$/.test(value) ? value : JSON.stringify(value)

/** `12:00:00.000 INFO  message  key=value`. Without the event's name, which is for machines. Stack traces follow below the line. */
const prettyLine = (line: string): string => {
  const { level, time, event: _, msg, ...fields } = JSON.parse(line) as Record<string, unknown>
  const traces = Object.values(fields).filter(
    (value): value is string => typeof value === "string" && value.includes("\n"),
  )
  const shown = Object.entries(fields).filter(([, value]) => !traces.includes(value as string))
  const head = `${String(time).slice(11, 23)} ${String(level).toUpperCase().padEnd(5)} ${String(msg)}`
  return `${head}${shown.map(([key, value]) => `  ${key}=${shownValue(value)}`).join("")}\n${traces.map((trace) => `    ${trace.replaceAll("\n", "\n    ")}\n`).join("")}`
}

/** Turns pino's JSON lines into lines for people. */
const prettyLines = (target: DestinationStream): DestinationStream => ({
  write: (line) => {
    let text = line
    try {
      text = prettyLine(line)
    } catch {
      // not JSON: written as it is
    }
    target.write(text)
  },
})

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

/**
 * One JSON object a line:
 * `{"level":"info","time":"2026-01-15T12:00:00.000Z","event":"model.ready","msg":"...",
 * ...fields}`.
 */
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
