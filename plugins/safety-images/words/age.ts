import type { Token } from "./tokens.ts"

const numbers = [
  "one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen",
  "satu dua tiga empat lima enam tujuh delapan sembilan sepuluh sebelas",
].flatMap((row) => row.split(" "))
const teensOfIndonesian = new Set("dua tiga empat lima enam tujuh".split(" "))
const years = new Set("year years yr yrs yo yold y tahun thn th".split(" "))
const ages = new Set("age aged ages umur usia berumur berusia".split(" "))
const joined = /^(?:1[0-7]|[1-9])(?:yo|yr|yrs|y|yearold|thn|th)$/

/** `7th grade`, `5th grader`, `kelas 6`. */
const isSchoolYear = (text: string, next: string | undefined): boolean =>
  /^(?:[1-9]|1[0-2])(?:st|nd|rd|th)$/.test(text)
    ? /^grade(?:r|rs)?$/.test(next ?? "")
    : text === "kelas" && /^(?:[1-9]|1[0-2])$/.test(next ?? "")

const roman = "iii iv v vi vii viii ix x xi xii xiii xiv xv xvi xvii".split(" ")
const hexadecimal = /^0x0*(?:[1-9a-f]|1[01])$/

const isUnderage = (text: string | undefined): boolean =>
  text !== undefined &&
  (/^(?:1[0-7]|[1-9])$/.test(text) ||
    numbers.includes(text) ||
    roman.includes(text) ||
    hexadecimal.test(text))

/** What is so many years old and no child. */
const things = new Set("whisky whiskey scotch bourbon rum wine brandy cognac".split(" "))
const isOfThing = (tokens: readonly Token[], years: number): boolean =>
  [1, 2].some((behind) => things.has(tokens[years + behind]?.text ?? ""))

/** Roman numbers and words, too. */
const isFromTen = (text: string): boolean =>
  isUnderage(text) && /^(?:1[0-7]|x[iv]*|ten|eleven|twelve|\w+teen)$/.test(text)

const isAside = (tokens: readonly Token[], at: number): boolean => {
  const { text, begins, glued } = tokens[at]!
  if (at === 0 || !begins || glued || !isFromTen(text)) return false
  return tokens[at + 1]?.begins ?? true
}

/**
 * Whether an age under 18 is named: `13 year old`, `13yo`, `aged 13`, `tiga belas tahun`;
 * also as a Roman or hexadecimal number.
 */
export const ageIn = (tokens: readonly Token[]): boolean =>
  tokens.some(({ text }, at) => {
    if (joined.test(text)) return true
    const [next, after] = [tokens[at + 1]?.text, tokens[at + 2]?.text]
    if (isSchoolYear(text, next)) return true
    if (ages.has(text)) return isUnderage(next)
    if (!isUnderage(text)) return false
    if (years.has(next ?? "")) return !isOfThing(tokens, at + 1)
    return next === "belas" && teensOfIndonesian.has(text) && years.has(after ?? "")
  })

/**
 * Whether a number from 10 to 17 is an aside of its own, as the ages of people are: `a girl, 15` and
 * `a girl, sixteen, by the sea`.
 */
export const asideIn = (tokens: readonly Token[]): boolean =>
  tokens.some((_, at) => isAside(tokens, at))
