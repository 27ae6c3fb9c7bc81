import { Cause, type Exit, Option } from "effect"
import { PluginError } from "../../core/errors.ts"
import type { Mask } from "../config/mask.ts"
import { ConfigError } from "../config/problems.ts"

/** Why a command failed; a config file may have several problems. */
export const reasonsOf = (error: unknown): readonly string[] => {
  if (error instanceof ConfigError) return error.problems
  if (error instanceof PluginError) return [`plugin ${error.plugin}: ${error.message}`]
  return [error instanceof Error ? error.message : String(error)]
}

/** A reason, and what to do about it; config problems have the second on a line of its own. */
export const splitFix = (reason: string): { readonly message: string; readonly fix?: string } => {
  const [message = "", fix] = reason.split(/\n\s+Fix: /)
  return fix === undefined ? { message } : { message, fix }
}

/** Prints why a command failed, without values of the environment, and exits with 1. */
export const refuse = (error: unknown, mask?: Mask): never => {
  const text = reasonsOf(error).join("\n")
  process.stderr.write(`${mask ? mask.text(text) : text}\n`)
  process.exit(1)
}

/** The error of a failed Exit, or an Error with the stack of its defect. */
export const errorOf = (exit: Exit.Failure<unknown, unknown>): unknown =>
  Option.getOrElse(Cause.findErrorOption(exit.cause), () => new Error(Cause.pretty(exit.cause)))
