import type { PortError } from "../../core/index.ts"

/**
 * The SQLSTATE (PostgreSQL manual, appendix A); undefined when the failure did not come from the
 * server.
 */
const sqlState = (error: PortError): string | undefined => {
  const code = error.cause instanceof Error && "code" in error.cause ? error.cause.code : undefined
  // codes of system errors are letters only, such as EPIPE
  return typeof code === "string" && /^[0-9PXFH][0-9A-Z]{4}$/.test(code) ? code : undefined
}

/**
 * The data of one item is bad (22: data exception, 23: constraint violation); other items of the
 * statement may pass.
 */
export const isAboutItems = (error: PortError): boolean =>
  ["22", "23"].includes(sqlState(error)?.slice(0, 2) ?? "")

/** A deadlock or a serialization failure: rolled back, so it can be retried. */
export const isContention = (error: PortError): boolean =>
  ["40001", "40P01"].includes(sqlState(error) ?? "")

/**
 * The connection was lost (08) or the server shut down (57): the statement may have been committed.
 * 57014 is a cancelled statement, which is rolled back.
 */
export const isUnknownOutcome = (error: PortError): boolean => {
  const state = sqlState(error)
  return (
    state === undefined || state.startsWith("08") || (state.startsWith("57") && state !== "57014")
  )
}
