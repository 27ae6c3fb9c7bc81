const rupiahFormat = new Intl.NumberFormat("id-ID", {
  style: "currency",
  currency: "IDR",
  minimumFractionDigits: 0,
  maximumFractionDigits: 6,
})

/** Exact: the ledger counts millionths. */
export const rupiah = (amount) => rupiahFormat.format(amount)

const localeOf = (language) => (language === "id" ? "id-ID" : "en-GB")

export const count = (value, language) => new Intl.NumberFormat(localeOf(language)).format(value)

export const decimal = (value, language) =>
  new Intl.NumberFormat(localeOf(language), {
    maximumSignificantDigits: 3,
    notation: "compact",
  }).format(value)

/** Unix seconds, in the reader's own time zone. */
export const moment = (seconds, language) =>
  new Intl.DateTimeFormat(localeOf(language), { dateStyle: "medium", timeStyle: "short" }).format(
    seconds * 1000,
  )

/** A day of the books: they are kept in UTC. */
export const day = (text, language) =>
  new Intl.DateTimeFormat(localeOf(language), {
    day: "numeric",
    month: "short",
    timeZone: "UTC",
  }).format(Date.parse(text))

export const dayMs = 86_400_000

/** Unix ms -> `2026-01-31`, in UTC. */
export const dayText = (ms) => new Date(ms).toISOString().slice(0, 10)

/** All days from `first` to `last`, both included. */
export const daysBetween = (first, last) => {
  const days = []
  for (let ms = Date.parse(first); ms <= Date.parse(last); ms += dayMs) days.push(dayText(ms))
  return days
}
