import type { Log } from "../../core/services/log.ts"

/** Warnings and errors on the console. */
export const consoleLog: Log = {
  debug: () => {},
  info: () => {},
  warn: console.warn,
  error: console.error,
  with: () => consoleLog,
}
