import type { EventName, Fields, Log } from "../../core/services/log.ts"
import { mayHoldSecret, redact, redactNames, redactText } from "./redact.ts"

export interface Destination {
  write(text: string): void
  /** Writes what was gathered, if the destination gathers. */
  flush?(): void
}

export interface LogOptions {
  readonly level: "debug" | "info" | "warn" | "error" | "silent"
  /** Lines for people instead of JSON. */
  readonly pretty?: boolean
  /** `stdout` by default; or anything with `write(text)`. */
  readonly destination?: "stdout" | "stderr" | Destination
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

/** Turns JSON lines into lines for people. */
const prettyLines = (target: Destination): Destination => ({
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

const streamOf = (target: LogOptions["destination"] = "stdout"): Destination => {
  if (typeof target === "object") return target
  const stream = target === "stdout" ? process.stdout : process.stderr
  return { write: (text) => void stream.write(text) }
}

/** How long a line may wait for others. */
const gatherMs = 10

/**
 * Writes lines together: a call to the system for each would cost more than the line itself. They
 * wait for `flush`, the end of the process, or a few milliseconds.
 */
export const gathering = (write: (text: string) => void): Required<Destination> => {
  let waiting = ""
  const flush = () => {
    const text = waiting
    waiting = ""
    if (text !== "") write(text)
  }
  process.once("exit", flush)
  return {
    write: (line) => {
      if (waiting === "") setTimeout(flush, gatherMs).unref()
      waiting += line
    },
    flush,
  }
}

const levels = ["debug", "info", "warn", "error", "silent"] as const
type Level = (typeof levels)[number]

/** As members of a JSON object, each with a comma before it. */
const members = (fields: Fields): string => {
  const inner = JSON.stringify(fields).slice(1, -1)
  return inner && `,${inner}`
}

/** The line without secrets. What looks like one is rare, so that texts are searched only then. */
const lineOf = (head: string, event: EventName, message: string, fields: Fields): string => {
  const of = (shown: Fields, msg: string) =>
    `${head}${new Date().toISOString()}","event":"${event}"${members(shown)},"msg":${JSON.stringify(msg)}}`
  const line = of(redactNames(fields), message)
  return mayHoldSecret(line) ? of(redact(fields), redactText(message)) : line
}

const makeLogOf = (least: Level, stream: Destination, ofLog: Fields): Log => {
  const at = (level: Level) => {
    if (levels.indexOf(level) < levels.indexOf(least)) return () => {}
    const head = `{"level":"${level}"${members(ofLog)},"time":"`
    const isUrgent = level === "warn" || level === "error"
    return (event: EventName, message: string, fields: Fields = {}): void => {
      stream.write(`${lineOf(head, event, message, fields)}\n`)
      if (isUrgent) stream.flush?.()
    }
  }
  return {
    debug: at("debug"),
    info: at("info"),
    warn: at("warn"),
    error: at("error"),
    with: (fields) => makeLogOf(least, stream, { ...ofLog, ...redact(fields) }),
  }
}

/**
 * One JSON object a line:
 * `{"level":"info","time":"2026-01-15T12:00:00.000Z","event":"model.ready","msg":"...",
 * ...fields}`.
 */
export const makeLog = (options: LogOptions): Log => {
  const stream = streamOf(options.destination)
  return makeLogOf(options.level, options.pretty ? prettyLines(stream) : stream, {})
}
