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

const isUnderage = (text: string | undefined): boolean =>
  text !== undefined && (/^(?:1[0-7]|[1-9])$/.test(text) || numbers.includes(text))

/** Whether an age under 18 is named: `13 year old`, `13yo`, `aged 13`, `tiga belas tahun`. */
export const ageIn = (tokens: readonly Token[]): boolean =>
  tokens.some(({ text }, at) => {
    if (joined.test(text)) return true
    const [next, after] = [tokens[at + 1]?.text, tokens[at + 2]?.text]
    if (isSchoolYear(text, next)) return true
    if (ages.has(text)) return isUnderage(next)
    if (!isUnderage(text)) return false
    return (
      years.has(next ?? "") ||
      (next === "belas" && teensOfIndonesian.has(text) && years.has(after ?? ""))
    )
  })
