const localeOf = (language) => (language === "id" ? "id-ID" : "en-GB")

const numbered = (value, language, least, most) =>
  new Intl.NumberFormat(localeOf(language), {
    minimumFractionDigits: least,
    maximumFractionDigits: most,
  }).format(value)

const signed = (amount, text) => `${amount < 0 ? "-" : ""}Rp\u00a0${text}`

/** Decimals that an amount is shown with: the larger, the fewer. */
const decimalsOf = (size) => {
  if (size === 0 || size >= 1000) return 0
  if (size >= 1) return 2
  return size >= 0.0001 ? 4 : 6
}

/** Formats an amount in rupiah for reading: `Rp 9,231`, `Rp 12.50`, `Rp 0.0240`. */
export const money = (amount, language) => {
  const size = Math.abs(amount)
  const decimals = decimalsOf(size)
  return signed(amount, numbered(size, language, decimals, decimals))
}

/** Formats an amount exactly: the ledger counts millionths. */
export const exactMoney = (amount, language) =>
  signed(amount, numbered(Math.abs(amount), language, 0, 6))

export const count = (value, language) => new Intl.NumberFormat(localeOf(language)).format(value)

/** Formats a measured value; what rounds to nothing has no sign. */
export const fixed = (value, language, digits = 2) =>
  numbered(Number(value.toFixed(digits)) || 0, language, digits, digits)

/** Formats a place in a recording: `1:02.5`. */
export const clock = (seconds, language) => {
  const tenths = Math.round(seconds * 10)
  const rest = (tenths % 600) / 10
  return `${Math.floor(tenths / 600)}:${rest < 10 ? "0" : ""}${fixed(rest, language, 1)}`
}

/** Formats seconds that are left: `14:59`. */
export const countdown = (seconds) =>
  `${Math.floor(seconds / 60)}:${String(seconds % 60).padStart(2, "0")}`

/** Formats a time that something took. */
export const duration = (ms, language) => {
  if (ms >= 10_000) return `${numbered(ms / 1000, language, 0, 0)} s`
  if (ms >= 1_000) return `${numbered(ms / 1000, language, 1, 1)} s`
  return `${numbered(ms, language, 0, ms < 10 ? 1 : 0)} ms`
}

/** Formats a part of a whole, from 0 to 1. */
export const percent = (part, language) =>
  new Intl.NumberFormat(localeOf(language), { style: "percent" }).format(part)

/** Formats a size of a file. */
export const bytes = (size, language) => {
  const steps = ["byte", "kilobyte", "megabyte", "gigabyte"]
  const step = Math.min(steps.length - 1, Math.floor(Math.log10(Math.max(1, size)) / 3))
  return new Intl.NumberFormat(localeOf(language), {
    style: "unit",
    unit: steps[step],
    maximumSignificantDigits: 3,
  }).format(size / 1000 ** step)
}

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

/** Formats a day in UTC, as the ledger has it, or an hour of one (`2026-01-31T05:00Z`). */
export const day = (text, language) =>
  new Intl.DateTimeFormat(localeOf(language), {
    day: "numeric",
    month: "short",
    timeZone: "UTC",
    ...(text.includes("T") && { hour: "2-digit", minute: "2-digit" }),
  }).format(Date.parse(text))

export const dayMs = 86_400_000

/** Converts Unix ms to `2026-01-31`, in UTC. */
export const dayText = (ms) => new Date(ms).toISOString().slice(0, 10)

/** Returns all hours of the days from `first` to `last`, as `2026-01-31T05:00Z`. */
export const hoursBetween = (first, last) =>
  daysBetween(first, last).flatMap((text) =>
    Array.from({ length: 24 }, (_, hour) => `${text}T${String(hour).padStart(2, "0")}:00Z`),
  )

/** Returns all days from `first` to `last`, both included. */
export const daysBetween = (first, last) => {
  const days = []
  for (let ms = Date.parse(first); ms <= Date.parse(last); ms += dayMs) days.push(dayText(ms))
  return days
}
