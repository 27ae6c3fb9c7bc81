import pg from "pg"
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

/**
 * SQLSTATEs (appendix A of the manual) of a server that can't be used now: connections (08), wrong
 * passwords (28: they were right when this server started), a database that was dropped, memory and
 * connections (53), a shutdown, a crash or a statement that took too long (57), its disks (58). A
 * server that only reads (25006) is a standby of a failover.
 */
const unavailable = /^(08|28|53|57|58)|^(25006|25P03|3D000)$/
const noRoom = "53100"

/** What `pg` throws by itself, without a code. */
const lostConnection =
  /^(Connection (terminated|ended)|timeout e|Query read timeout|Client (has encountered a connection error|was closed)|Cannot use a pool after|Received unexpected|The(re was an error establishing an| server does not support) SSL)/

const codeOf = (error: Error): string | undefined =>
  "code" in error && typeof error.code === "string" ? error.code : undefined

/**
 * What the failure says about the database; undefined: it is about the statement. System errors
 * (ECONNREFUSED, ENOTFOUND, CERT_HAS_EXPIRED ...) come from the connection only; a TypeError is a
 * mistake in the code that has asked.
 */
export const whyOf = (error: unknown): "unavailable" | "full" | undefined => {
  if (error instanceof AggregateError) return whyOf(error.errors[0])
  if (!(error instanceof Error) || error instanceof TypeError || error instanceof RangeError)
    return undefined
  const code = codeOf(error)
  if (error instanceof pg.DatabaseError) {
    if (code === noRoom) return "full"
    return code !== undefined && unavailable.test(code) ? "unavailable" : undefined
  }
  return code !== undefined || lostConnection.test(error.message) ? "unavailable" : undefined
}

export const databaseError = (cause: unknown, what?: string): PortError => {
  const why = isPortError(cause) ? cause.why : whyOf(cause)
  return new PortError({
    port: "database",
    message: what === undefined ? reasonOf(cause) : `${what}: ${reasonOf(cause)}`,
    cause,
    ...(why && { why }),
  })
}

export const cannotStart = (message: string, cause?: unknown): PluginError =>
  new PluginError({ plugin: "database-postgres", message, cause })

export const isPortError = (error: unknown): error is PortError =>
  typeof error === "object" && error !== null && "_tag" in error && error._tag === "PortError"

const isPluginError = (error: unknown): error is PluginError =>
  typeof error === "object" && error !== null && "_tag" in error && error._tag === "PluginError"

export const asPluginError = (error: unknown): PluginError =>
  isPluginError(error) ? error : cannotStart(reasonOf(error), error)
