import { Cause, Exit, Option } from "effect"
import type { PortError } from "../../../core/errors.ts"

/** Returns the failure of an exit if it is a PortError of the database. */
export const portErrorOf = (exit: Exit.Exit<unknown, unknown>): PortError | undefined => {
  if (!Exit.isFailure(exit)) return undefined
  const error = Option.getOrUndefined(Cause.findErrorOption(exit.cause)) as PortError | undefined
  return error?._tag === "PortError" && error.port === "database" ? error : undefined
}

export const isPortErrorOf = (exit: Exit.Exit<unknown, unknown>): boolean =>
  portErrorOf(exit) !== undefined
