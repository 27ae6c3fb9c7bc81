import { fold } from "./fold.ts"

/** A piece of a text between spaces and punctuation, with the words that it may stand for. */
export interface Token {
  /** Letters and digits as they stand there, folded. */
  readonly text: string
  /** Words that it may be, by digits and signs that look like letters; the first as it stands. */
  readonly forms: readonly string[]
  /** With `?` for each sign that hides a letter (`n*de`), where there are one or two. */
  readonly masked?: string
  /** Nothing but punctuation is before it: no space. */
  readonly glued: boolean
  /** A comma, or what else ends a clause, is before it. */
  readonly begins: boolean
}

const alike: Readonly<Record<string, string>> = {
  "0": "o",
  "1": "i",
  "2": "z",
  "3": "e",
  "4": "a",
  "5": "s",
  "6": "g",
  "7": "t",
  "8": "b",
  "9": "g",
  "@": "a",
  $: "s",
  "!": "i",
  "|": "i",
  "+": "t",
  "€": "e",
  "£": "l",
  "¥": "y",
}
const endOfClause = /[,;:.!?()\n/-]/
// everything else divides words
const piece = /[a-z0-9@$!|+€£¥*#%]+/g
const outerSigns = /^[@$!|+€£¥*#%]+|[@$!|+€£¥*#%]+$/g
const outerSignsAndDigits = /^[0-9@$!|+€£¥*#%]+|[0-9@$!|+€£¥*#%]+$/g
const anySign = /[@$!|+€£¥*#%]/g
const hidden = /[*#%]/g
const notLetter = /[^a-z]/g

// of a possessive or a short form with it, or within a word
const apostrophe = /(?<=[a-z])['’`](?:(?:s|re|ll|d|ve|t|m)\b|(?=[a-z]))/g

const lettersOf = (text: string): string =>
  text.replace(notLetter, (character) => alike[character] ?? "")

const maskedOf = (text: string): string | undefined => {
  const inner = text.replace(/^[#%]+|[!#%]+$/g, "")
  const count = inner.match(hidden)?.length ?? 0
  if (count === 0 || count > 2 || inner.length - count < 2) return undefined
  return inner.replace(/[^a-z]/g, (character) => alike[character] ?? "?")
}

const plainLetters = /^[a-z]+$/

const formsOf = (text: string): readonly string[] => {
  if (plainLetters.test(text))
    return text.includes("v")
      ? [...new Set([text, text.replaceAll("vv", "w"), text.replaceAll("v", "u")])]
      : [text]
  const bare = text.replace(outerSigns, "")
  const written = text.replace(anySign, "")
  // a number is no word, though it could be read as one
  if (/^[0-9]*$/.test(written)) return written === "" ? [] : [written]
  const forms = [
    written,
    lettersOf(text),
    lettersOf(bare),
    lettersOf(written),
    text.replace(outerSignsAndDigits, ""),
    lettersOf(text.replace(outerSignsAndDigits, "")),
  ]
  return [...new Set(forms)].filter((form) => form !== "")
}

/** The tokens of a text; takes time in proportion to its length. */
export const tokensOf = (text: string): readonly Token[] => {
  const folded = fold(text).replace(apostrophe, "")
  const tokens: Token[] = []
  let end = 0
  for (const { 0: found, index } of folded.matchAll(piece)) {
    const between = folded.slice(end, index)
    const glued = tokens.length > 0 && !/\s/.test(between)
    const begins = tokens.length === 0 || endOfClause.test(between)
    end = index + found.length
    const forms = formsOf(found)
    if (forms[0] === undefined) continue
    const masked = hidden.test(found) ? maskedOf(found) : undefined
    hidden.lastIndex = 0
    tokens.push({
      text: forms[0],
      forms,
      glued,
      begins,
      ...(masked === undefined ? {} : { masked }),
    })
  }
  return tokens
}

/** The one letter that a token is, or looks like; undefined where it is longer. */
export const letterOf = ({ text, forms }: Token): string | undefined => {
  if (text.length !== 1) return undefined
  const letter = forms.find((form) => plainLetters.test(form)) ?? alike[text]
  return letter?.length === 1 ? letter : undefined
}
