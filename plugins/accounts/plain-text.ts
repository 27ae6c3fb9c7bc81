import { hasHiddenCharacters, isLongerThan, isVisible } from "../../core/index.ts"

/** Whether a text is one line, not blank, and what it looks like. */
export const isPlainText = (text: string, maxCharacters: number): boolean =>
  isVisible(text) && !isLongerThan(text, maxCharacters) && !hasHiddenCharacters(text)

export const maxNameCharacters = 100
export const isKeyName = (text: string): boolean => isPlainText(text, maxNameCharacters)
export const keyNameRule = `must be 1 to ${maxNameCharacters} characters, without control or invisible characters`
