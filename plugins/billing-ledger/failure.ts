import type { PortError } from "../../core/index.ts"

/** SQLSTATE (PostgreSQL, appendix A), or undefined when the failure did not come from the server. */
const sqlState = (error: PortError): string | undefined => {
  const code = error.cause instanceof Error && "code" in error.cause ? error.cause.code : undefined
  // system errors have codes of capitals only, as EPIPE
  return typeof code === "string" && /^[0-9PXFH][0-9A-Z]{4}$/.test(code) ? code : undefined
}

/** 22: data, 23: constraint. Another item in the same statement would have passed. */
export const isAboutItems = (error: PortError): boolean =>
  ["22", "23"].includes(sqlState(error)?.slice(0, 2) ?? "")

/** A deadlock or a serialization failure: rolled back, worth another try. */
export const isContention = (error: PortError): boolean =>
  ["40001", "40P01"].includes(sqlState(error) ?? "")

/** The connection was lost on the way: the statement may have been committed. 08: connection, 57: the server goes down. */
export const isUnknownOutcome = (error: PortError): boolean => {
  const state = sqlState(error)
  return (
    state === undefined || state.startsWith("08") || (state.startsWith("57") && state !== "57014")
  )
}
