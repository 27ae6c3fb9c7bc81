import { isLongerThan } from "../../core/index.ts"

/**
 * Control characters, single surrogates and line separators, which names and reasons must not have.
 */
const unprintable = /[\p{Cc}\p{Cs}\p{Zl}\p{Zp}]/u

/** Whether a text is one line and not blank. */
export const isPlainText = (text: string, maxCharacters: number): boolean =>
  text.trim() !== "" && !isLongerThan(text, maxCharacters) && !unprintable.test(text)

export const maxNameCharacters = 100
export const isKeyName = (text: string): boolean => isPlainText(text, maxNameCharacters)
export const keyNameRule = `must be 1 to ${maxNameCharacters} characters, without control characters`
