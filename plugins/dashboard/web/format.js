const rupiahFormat = new Intl.NumberFormat("id-ID", {
  style: "currency",
  currency: "IDR",
  minimumFractionDigits: 0,
  maximumFractionDigits: 6,
})

/** Formats an amount exactly: the ledger counts millionths. */
export const rupiah = (amount) => rupiahFormat.format(amount)

const localeOf = (language) => (language === "id" ? "id-ID" : "en-GB")

export const count = (value, language) => new Intl.NumberFormat(localeOf(language)).format(value)

export const decimal = (value, language) =>
  new Intl.NumberFormat(localeOf(language), {
    maximumSignificantDigits: 3,
    notation: "compact",
  }).format(value)

/** Formats Unix seconds in the reader's time zone. */
export const moment = (seconds, language) =>
  new Intl.DateTimeFormat(localeOf(language), { dateStyle: "medium", timeStyle: "short" }).format(
    seconds * 1000,
  )

/** Formats a day in UTC, as the ledger has it. */
export const day = (text, language) =>
  new Intl.DateTimeFormat(localeOf(language), {
    day: "numeric",
    month: "short",
    timeZone: "UTC",
  }).format(Date.parse(text))

export const dayMs = 86_400_000

/** Converts Unix ms to `2026-01-31`, in UTC. */
export const dayText = (ms) => new Date(ms).toISOString().slice(0, 10)

/** Returns all days from `first` to `last`, both included. */
export const daysBetween = (first, last) => {
  const days = []
  for (let ms = Date.parse(first); ms <= Date.parse(last); ms += dayMs) days.push(dayText(ms))
  return days
}
