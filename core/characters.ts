import { Schema } from "effect"

// characters are Unicode code points; a text of n UTF-16 units has at most n code points, so short
// texts are never walked

/** Returns the index just after the first `count` characters. */
const endOfFirst = (text: string, count: number): number => {
  let at = 0
  for (let n = 0; n < count && at < text.length; n++)
    at += (text.codePointAt(at) ?? 0) > 0xffff ? 2 : 1
  return at
}

export const isLongerThan = (text: string, characters: number): boolean =>
  text.length > characters && endOfFirst(text, characters) < text.length

export const firstCharacters = (text: string, count: number): string =>
  text.length <= count ? text : text.slice(0, endOfFirst(text, count))

/**
 * Control characters, line separators, lone surrogates, and characters without a glyph: what can't
 * be seen, or changes how the rest is shown (bidirectional marks display `exe.jpg` as `gpj.exe`).
 * Joiners and variation selectors are none of them: scripts and emoji need them.
 */
const hidden = /[\p{Cc}\p{Cs}\p{Zl}\p{Zp}]|(?!\p{Join_Control}|\p{Variation_Selector})\p{DI}/u

/** True for a name that does not read as it is. */
export const hasHiddenCharacters = (text: string): boolean => hidden.test(text)

/** False for a text of blanks, marks and joiners alone. */
export const isVisible = (text: string): boolean => /[\p{L}\p{N}\p{P}\p{S}]/u.test(text)

/** Schema check for the length of a text field. */
export const atMostCharacters = (count: number) =>
  Schema.makeFilter(
    (text: string) =>
      !isLongerThan(text, count) || `must have at most ${count.toLocaleString("en")} characters`,
  )
