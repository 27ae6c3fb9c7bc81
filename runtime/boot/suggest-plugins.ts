import type { Token } from "../../core/tokens.ts"
import { builtinPlugins } from "../../plugins/index.ts"
import type { Problem } from "../config/problems.ts"

/** A problem that one more plugin would solve. */
export interface MissingProvider extends Omit<Problem, "fix"> {
  readonly token: Token<unknown>
}

/**
 * Names the built-in plugins that provide a token. Loads all of them, so it is for refusals only.
 */
export const suggestPlugins = async (token: Token<unknown>): Promise<string> => {
  const names = await Promise.all(
    Object.entries(builtinPlugins).map(async ([name, load]) => {
      const { provides } = (await load()).plugin
      return provides.some((provided) => provided.name === token.name) ? [name] : []
    }),
  )
  return names.flat().length > 0
    ? `add the plugin ${names.flat().join(" or ")} under plugins.`
    : "add a plugin that provides it."
}

export const withFixes = (
  problems: readonly (Problem | MissingProvider)[],
): Promise<readonly Problem[]> =>
  Promise.all(
    problems.map(async (problem) => {
      if ("fix" in problem) return problem
      const { path, message, token } = problem
      return { path, message, fix: await suggestPlugins(token) }
    }),
  )
