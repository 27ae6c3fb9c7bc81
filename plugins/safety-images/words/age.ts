import type { Token } from "./tokens.ts"

const numbers = [
  "one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen",
  "satu dua tiga empat lima enam tujuh delapan sembilan sepuluh sebelas",
].flatMap((row) => row.split(" "))
const teensOfIndonesian = new Set("dua tiga empat lima enam tujuh".split(" "))
const years = new Set("year years yr yrs yo yold y tahun thn th".split(" "))
const ages = new Set("age aged ages umur umurnya usia usianya berumur berusia".split(" "))
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

/** They say that somebody is so old: `is 13`, `turned 14`. */
const copulas = new Set("is was turned turns turning adalah genap".split(" "))
/** What else may stand before the number of an age: `a girl of just twelve`. */
const fillers = new Set(
  "of only just barely around about almost nearly approximately now under below am who that hanya cuma baru masih sekitar yang itu".split(
    " ",
  ),
)

/** Returns the place of the word before a number and its fillers, and whether one is a copula. */
const beforeAge = (tokens: readonly Token[], at: number): readonly [number, boolean] => {
  let before = at - 1
  let isSaid = false
  for (; before >= 0; before--) {
    const { text } = tokens[before]!
    if (copulas.has(text)) isSaid = true
    else if (!fillers.has(text)) break
  }
  return [before, isSaid]
}

/** The places of tokens that are words for people, and sexual ones. */
export interface Places {
  readonly people: ReadonlySet<number>
  readonly sexual: ReadonlySet<number>
}

/** What is counted without an -s. */
const units = new Set(
  "mm cm m km k px mp kg ft feet foot inch am pm oclock percent hd fps bit speed piece pack string quarter poster hundred thousand puluh ratus ribu juta orang ekor buah helai lembar kali men women people children".split(
    " ",
  ),
)
const plural = /^\w{2,}[^isu]s$/
/** What ends as plurals do, but is seldom what a number counts. */
const uncounted = new Set(
  "photos pics pictures images selfies eyes poses wears sits stands lies indoors outdoors always belas panas polos bebas atas kaos kelas".split(
    " ",
  ),
)
/** A word that ends what a number counts. */
const connecting =
  /^(?:in|at|on|with|without|and|or|who|by|for|from|the|an?|is|was|has|di|dan|yang|dengan|tanpa|pada|\w{2,}ing)$/

/** Whether a number counts what is behind it: `15 roses`, `13 red balloons`, `1 girl`. */
const isCount = (tokens: readonly Token[], at: number, { people, sexual }: Places): boolean => {
  const next = tokens[at + 1]?.text ?? ""
  if (units.has(next)) return true
  for (const behind of [at + 1, at + 2]) {
    const token = tokens[behind]
    if (token === undefined || token.begins) return false
    const { text } = token
    if (behind === at + 1 && (people.has(behind) || text === "of")) return true
    if (connecting.test(text)) return false
    if (units.has(text)) return true
    if (plural.test(text) && !uncounted.has(text) && !sexual.has(behind)) return true
  }
  return false
}

/** `16:9`, `3/4` and `10/10`; not `13-14`. */
const isRatio = ({ text }: Token, next: Token | undefined): boolean =>
  next?.glued === true &&
  /^\d+$/.test(next.text) &&
  !(isFromTen(text) && isUnderage(next.text) && Number(next.text) > Number(text))

/**
 * Whether an age under 18 is named: `13 year old`, `13yo`, `aged 13`, `tiga belas tahun`;
 * also as a Roman or hexadecimal number.
 */
export const ageIn = (tokens: readonly Token[], places: Places): boolean =>
  tokens.some(({ text }, at) => {
    if (joined.test(text)) return true
    const [next, after] = [tokens[at + 1]?.text, tokens[at + 2]?.text]
    if (isSchoolYear(text, next)) return true
    if (!isUnderage(text)) return false
    const [before] = beforeAge(tokens, at)
    const isAge = ages.has(tokens[before]?.text ?? "")
    if (isAge && (before === at - 1 || !isCount(tokens, at, places))) return true
    if (years.has(next ?? "")) return !isOfThing(tokens, at + 1)
    return next === "belas" && teensOfIndonesian.has(text) && years.has(after ?? "")
  })

const pronouns = new Set("she he i dia".split(" "))

/**
 * Whether a number under 18 is the age of somebody: `girl 13`, `a girl of twelve`, `she is 13`, and
 * behind a comma from 10 on. Numbers that count something are none.
 */
export const ageOfPersonIn = (tokens: readonly Token[], places: Places): boolean =>
  tokens.some((token, at) => {
    const { text, begins } = token
    if (!isUnderage(text) || isRatio(token, tokens[at + 1])) return false
    const [before, isSaid] = beforeAge(tokens, at)
    const isBeside = places.people.has(before) || pronouns.has(tokens[before]?.text ?? "")
    if (!isBeside && !(isSaid && places.people.size > 0)) return false
    if (isCount(tokens, at, places)) return false
    if (tokens[at + 1]?.text === "belas") return teensOfIndonesian.has(text)
    if (isSaid) return !/^(?:one|satu|[vx])$/.test(text)
    return begins ? isFromTen(text) : !/^(?:one|two|satu|dua|[12vx])$/.test(text)
  })

/**
 * Whether a number from 10 to 17 is an aside of its own, as the ages of people are: `a girl, 15` and
 * `a girl, sixteen, by the sea`.
 */
export const asideIn = (tokens: readonly Token[]): boolean =>
  tokens.some((_, at) => isAside(tokens, at))
