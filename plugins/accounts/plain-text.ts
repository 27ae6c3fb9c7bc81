import { isLongerThan } from "../../core/index.ts"

/** Control characters, single surrogates, and what breaks lines: none of it belongs into a name or a reason. */
const unprintable = /[\p{Cc}\p{Cs}\p{Zl}\p{Zp}]/u

/** One line that says something. */
export const isPlainText = (text: string, maxCharacters: number): boolean =>
  text.trim() !== "" && !isLongerThan(text, maxCharacters) && !unprintable.test(text)

export const maxNameCharacters = 100
export const isKeyName = (text: string): boolean => isPlainText(text, maxNameCharacters)
export const keyNameRule = `must be 1 to ${maxNameCharacters} characters, without control characters`
