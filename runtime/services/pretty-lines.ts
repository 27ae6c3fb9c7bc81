import type { DestinationStream } from "pino"

const show = (value: unknown): string =>
  typeof value === "string" && /^[^\s"=]+$/.test(value) ? value : JSON.stringify(value)

/** `12:00:00.000 INFO  message  key=value`. The event's name is for machines. A stack trace stays readable below its line. */
const format = (line: string): string => {
  const { level, time, event: _, msg, ...fields } = JSON.parse(line) as Record<string, unknown>
  const traces = Object.values(fields).filter(
    (value): value is string => typeof value === "string" && value.includes("\n"),
  )
  const shown = Object.entries(fields).filter(([, value]) => !traces.includes(value as string))
  const head = `${String(time).slice(11, 23)} ${String(level).toUpperCase().padEnd(5)} ${String(msg)}`
  return `${head}${shown.map(([key, value]) => `  ${key}=${show(value)}`).join("")}\n${traces.map((trace) => `    ${trace.replaceAll("\n", "\n    ")}\n`).join("")}`
}

/** Turns pino's JSON lines into lines for people. */
export const prettyLines = (target: DestinationStream): DestinationStream => ({
  write: (line) => {
    let text = line
    try {
      text = format(line)
    } catch {
      // better a raw line than none
    }
    target.write(text)
  },
})
