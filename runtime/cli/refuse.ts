import { Cause, type Exit, Option } from "effect"
import { ConfigError } from "../config/problems.ts"

/** Shows why a command could not do its work, and ends with 1. */
export const refuse = (error: unknown): never => {
  const text =
    error instanceof ConfigError
      ? error.problems.join("\n")
      : error instanceof Error
        ? error.message
        : String(error)
  process.stderr.write(`${text}\n`)
  process.exit(1)
}

/** The reason of a failed Exit, as a person reads it. */
export const reasonOf = (exit: Exit.Failure<unknown, unknown>): unknown => {
  const error = Option.getOrUndefined(Cause.findErrorOption(exit.cause))
  if (error === undefined) return new Error(Cause.pretty(exit.cause))
  const { plugin, message } = error as { plugin?: string; message?: string }
  return plugin === undefined ? error : new Error(`plugin ${plugin}: ${message}`)
}
