import { PluginError, PortError } from "../../core/errors.ts"

/** Describes a failure for the operator, with the SQLSTATE where there is one. */
export const reasonOf = (error: unknown): string => {
  // Node tries IPv6 and IPv4 at once and throws both failures in an error without a message
  if (error instanceof AggregateError) return error.errors.map(reasonOf).join("; ")
  if (!(error instanceof Error)) return String(error)
  const code =
    "code" in error && typeof error.code === "string" && !error.message.includes(error.code)
      ? ` (${error.code})`
      : ""
  return `${error.message || error.name}${code}`
}

export const databaseError = (cause: unknown, what?: string): PortError =>
  new PortError({
    port: "database",
    message: what === undefined ? reasonOf(cause) : `${what}: ${reasonOf(cause)}`,
    cause,
  })

export const cannotStart = (message: string, cause?: unknown): PluginError =>
  new PluginError({ plugin: "database-postgres", message, cause })

export const isPortError = (error: unknown): error is PortError =>
  typeof error === "object" && error !== null && "_tag" in error && error._tag === "PortError"

const isPluginError = (error: unknown): error is PluginError =>
  typeof error === "object" && error !== null && "_tag" in error && error._tag === "PluginError"

export const asPluginError = (error: unknown): PluginError =>
  isPluginError(error) ? error : cannotStart(reasonOf(error), error)
