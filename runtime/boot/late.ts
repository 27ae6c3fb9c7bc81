import type { DependencyContainer } from "tsyringe"
import { resolve, type Token } from "../../core/tokens.ts"

/** What a plugin provides when it starts, asked for with every call: looked up until it is there, and then known. */
export const late = <T>(container: DependencyContainer, token: Token<T>): (() => T) => {
  let found: T | undefined
  return () => {
    found ??= resolve(container, token)
    return found
  }
}

/** The same for what may stay away. */
export const lateOptional = <T>(
  container: DependencyContainer,
  token: Token<T>,
): (() => T | undefined) => {
  const find = late(container, token)
  let isThere = false
  return () => {
    isThere ||= container.isRegistered(token.key, true)
    return isThere ? find() : undefined
  }
}
