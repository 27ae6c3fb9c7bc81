import { Cause, type Exit, Option } from "effect"
import { PluginError } from "../../core/errors.ts"
import { ConfigError } from "../config/problems.ts"

const textOf = (error: unknown): string => {
  if (error instanceof ConfigError) return error.problems.join("\n")
  if (error instanceof PluginError) return `plugin ${error.plugin}: ${error.message}`
  return error instanceof Error ? error.message : String(error)
}

/** Prints why a command failed, and exits with 1. */
export const refuse = (error: unknown): never => {
  process.stderr.write(`${textOf(error)}\n`)
  process.exit(1)
}

/** The error of a failed Exit, or an Error with the stack of its defect. */
export const errorOf = (exit: Exit.Failure<unknown, unknown>): unknown =>
  Option.getOrElse(Cause.findErrorOption(exit.cause), () => new Error(Cause.pretty(exit.cause)))
