import { Effect } from "effect"
import {
  type ApiError,
  apiError,
  hasHiddenCharacters,
  isLongerThan,
  isVisible,
} from "../../../core/index.ts"

const maxCharacters = 255

const baseName = (path: string): string =>
  path.slice(Math.max(path.lastIndexOf("/"), path.lastIndexOf("\\")) + 1).trim()

const problemOf = (name: string): string | undefined => {
  if (!isVisible(name) || name === "." || name === "..") return "must have a name"
  if (isLongerThan(name, maxCharacters))
    return `must have a name of at most ${maxCharacters} characters`
  return hasHiddenCharacters(name)
    ? "must have a name without control or invisible characters"
    : undefined
}

/** Returns the name without its folders, safe to show and to save under, or fails with 400. */
export const readFileName = (given: string, param: string): Effect.Effect<string, ApiError> => {
  // checked before it is trimmed: a line break at the end is wrong, too
  const name = hasHiddenCharacters(given) ? given : baseName(given)
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
