/** The languages of mails. */
export const locales = ["en", "id"] as const
export type Locale = (typeof locales)[number]

const maxCharacters = 1_000

const quality = (parameters: readonly string[]): number => {
  const given = parameters
    .map((parameter) => /^\s*q=(\d(?:\.\d{1,3})?)\s*$/i.exec(parameter)?.[1])
    .find((q) => q !== undefined)
  return given === undefined ? 1 : Number(given)
}

/**
 * Returns the language that an `Accept-Language` header prefers (RFC 9110, section 12.5.4); the
 * first of equals.
 */
export const chooseLocale = (languages: string | undefined, otherwise: Locale): Locale => {
  const wishes = (languages ?? "")
    .slice(0, maxCharacters)
    .split(",")
    .map((wish) => {
      const [range = "", ...parameters] = wish.split(";")
      // `in` was the code of Indonesian until 1989; some browsers still send it
      const primary = range.trim().toLowerCase().split("-")[0]?.replace(/^in$/, "id")
      return { locale: locales.find((locale) => locale === primary), quality: quality(parameters) }
    })
    .filter((wish) => wish.locale !== undefined && wish.quality > 0)
    .sort((a, b) => b.quality - a.quality)
  return wishes[0]?.locale ?? otherwise
}
