import type { DependencyContainer } from "tsyringe"
import { resolve, resolveOptional, type Token } from "../../core/tokens.ts"

/**
 * What a plugin provides when it starts, for callers that exist before: looked up with each call
 * until it is there, then remembered.
 */
export const lazy = <T>(container: DependencyContainer, token: Token<T>): (() => T) => {
  let found: T | undefined
  return () => {
    found ??= resolve(container, token)
    return found
  }
}

/** The same; undefined as long as no plugin has provided it. */
export const optional = <T>(
  container: DependencyContainer,
  token: Token<T>,
): (() => T | undefined) => {
  let found: T | undefined
  return () => {
    found ??= resolveOptional(container, token)
    return found
  }
}
