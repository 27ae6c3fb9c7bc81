const names = {
  days: ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"],
  months: [
    ...["January", "February", "March", "April", "May", "June"],
    ...["July", "August", "September", "October", "November", "December"],
  ],
}

const padded = (value: number, digits = 2, by = "0"): string => String(value).padStart(digits, by)

const dayMs = 86_400_000
const dayOf = (date: Date): number => Date.UTC(date.getFullYear(), date.getMonth(), date.getDate())
const dayOfYear = (date: Date): number => (dayOf(date) - Date.UTC(date.getFullYear(), 0, 1)) / dayMs

/** The week of the year, whose first one begins with its first such day; 0 is Sunday. */
const weekFrom = (date: Date, first: number): number =>
  Math.floor((dayOfYear(date) + 7 - ((date.getDay() + 7 - first) % 7)) / 7)

/** Year and week of ISO 8601, those of the week's Thursday. */
const isoWeek = (date: Date): readonly [year: number, week: number] => {
  const thursday = new Date(dayOf(date) + (4 - (date.getDay() || 7)) * dayMs)
  const year = thursday.getUTCFullYear()
  return [year, Math.floor((thursday.getTime() - Date.UTC(year, 0, 1)) / dayMs / 7) + 1]
}

const hourOf = (date: Date): number => date.getHours() % 12 || 12

/** The directives of C's strftime, of which some are others together. */
const directives: Readonly<Record<string, string | ((date: Date) => string)>> = {
  a: (date) => names.days[date.getDay()]!.slice(0, 3),
  A: (date) => names.days[date.getDay()]!,
  b: (date) => names.months[date.getMonth()]!.slice(0, 3),
  B: (date) => names.months[date.getMonth()]!,
  c: "%a %b %e %H:%M:%S %Y",
  C: (date) => padded(Math.floor(date.getFullYear() / 100)),
  d: (date) => padded(date.getDate()),
  D: "%m/%d/%y",
  e: (date) => padded(date.getDate(), 2, " "),
  f: (date) => padded(date.getMilliseconds() * 1000, 6),
  F: "%Y-%m-%d",
  G: (date) => String(isoWeek(date)[0]),
  h: "%b",
  H: (date) => padded(date.getHours()),
  I: (date) => padded(hourOf(date)),
  j: (date) => padded(dayOfYear(date) + 1, 3),
  k: (date) => padded(date.getHours(), 2, " "),
  l: (date) => padded(hourOf(date), 2, " "),
  m: (date) => padded(date.getMonth() + 1),
  M: (date) => padded(date.getMinutes()),
  n: () => "\n",
  p: (date) => (date.getHours() < 12 ? "AM" : "PM"),
  r: "%I:%M:%S %p",
  R: "%H:%M",
  s: (date) => String(Math.floor(date.getTime() / 1000)),
  S: (date) => padded(date.getSeconds()),
  t: () => "\t",
  T: "%H:%M:%S",
  u: (date) => String(date.getDay() || 7),
  U: (date) => padded(weekFrom(date, 0)),
  V: (date) => padded(isoWeek(date)[1]),
  w: (date) => String(date.getDay()),
  W: (date) => padded(weekFrom(date, 1)),
  x: "%m/%d/%y",
  X: "%H:%M:%S",
  y: (date) => padded(date.getFullYear() % 100),
  Y: (date) => String(date.getFullYear()),
  // the time that transformers gives has no zone
  z: () => "",
  Z: () => "",
  "%": () => "%",
}

/**
 * Writes a time as Python's `strftime` does on Linux, in English, whatever the server's language is.
 * `-` leaves out leading zeros; unknown directives stay as they are.
 */
export const strftime = (date: Date, format: string): string =>
  format.replaceAll(/%(-?)([a-zA-Z%])/g, (whole, bare: string, name: string) => {
    const directive = directives[name]
    if (directive === undefined) return whole
    const text = typeof directive === "string" ? strftime(date, directive) : directive(date)
    return bare ? text.replace(/^[0 ]+(?=\d)/, "") : text
  })
