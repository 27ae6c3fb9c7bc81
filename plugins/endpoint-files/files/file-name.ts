import { Effect } from "effect"
import { type ApiError, apiError, isLongerThan } from "../../../core/index.ts"

const maxCharacters = 255

/**
 * Control characters, line separators, lone surrogates, and bidirectional marks (they display
 * `exe.jpg` as `gpj.exe`).
 */
const unfit = /[\p{Cc}\p{Zl}\p{Zp}\p{Cs}\u200e\u200f\u061c\u202a-\u202e\u2066-\u2069]/u

const baseName = (path: string): string =>
  path.slice(Math.max(path.lastIndexOf("/"), path.lastIndexOf("\\")) + 1).trim()

const problemOf = (name: string): string | undefined => {
  if (name === "" || name === "." || name === "..") return "must have a name"
  if (isLongerThan(name, maxCharacters))
    return `must have a name of at most ${maxCharacters} characters`
  return unfit.test(name) ? "must have a name without control characters" : undefined
}

/** Returns the name without its folders, safe to show and to save under, or fails with 400. */
export const readFileName = (given: string, param: string): Effect.Effect<string, ApiError> => {
  // checked before it is trimmed: a line break at the end is wrong, too
  const name = unfit.test(given) ? given : baseName(given)
  const problem = problemOf(name)
  return problem === undefined
    ? Effect.succeed(name)
    : Effect.fail(apiError("invalid_request_error", `${param}: ${problem}`, { param }))
}

/**
 * Forms escape these three characters, and no others (HTML standard, multipart/form-data encoding).
 */
export const fromForm = (name: string): string =>
  name.replaceAll("%22", '"').replace(/%0D/gi, "\r").replace(/%0A/gi, "\n")

export const extensionOf = (name: string): string => {
  const dot = name.lastIndexOf(".")
  return dot < 0 ? "" : name.slice(dot + 1).toLowerCase()
}
