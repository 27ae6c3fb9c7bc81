import { normalize } from "node:path"

/** Hides what came from the environment: each value is shown as its `${NAME}`. */
export interface Mask {
  /** For refusals and for what commands print. */
  text(text: string): string
  /** For lines of the log, where a short value may be a common word: long values only. */
  line(line: string): string
}

/** Shorter ones are hidden between quotation marks only: they occur in words. */
const shortest = 4
const shortestInLog = 12

/** Ports, counts and switches are no secrets, and what refuses them must name them. */
const isPlain = (value: string): boolean => /^(\d{1,5}|true|false)$/.test(value)

/** Broken percent-encoding, or half a character: then there is no such form. */
const ifPossible = (form: () => string): readonly string[] => {
  try {
    return [form()]
  } catch {
    return []
  }
}

const passwordOf = (value: string): readonly string[] => {
  const [password = ""] = ifPossible(() => new URL(value).password)
  return [password, ...ifPossible(() => decodeURIComponent(password))]
}

/** A value as it stands in messages: quoted, in a URL, as a path, in lower case; and its password. */
const formsOf = (value: string): readonly string[] => {
  const inJson = JSON.stringify(value).slice(1, -1)
  const trimmed = value.trim()
  return [
    ...[value, inJson, trimmed, trimmed.replace(/\/+$/, ""), value.toLowerCase()],
    ...(value.includes("/") ? [normalize(value).replace(/\/+$/, "")] : []),
    ...ifPossible(() => encodeURI(value)),
    ...ifPossible(() => encodeURIComponent(value)),
    ...passwordOf(trimmed),
  ]
}

const literal = (text: string): string => text.replace(/[.*+?^${}()|[\]\\/-]/g, "\\$&")

const patternOf = (form: string): string =>
  form.length < shortest ? `(?<=['"\`])${literal(form)}(?=['"\`])` : literal(form)

const replacer = (names: ReadonlyMap<string, string>) => {
  if (names.size === 0) return (text: string) => text
  const longestFirst = [...names.keys()].sort((a, b) => b.length - a.length)
  const pattern = new RegExp(longestFirst.map(patternOf).join("|"), "g")
  return (text: string) => text.replace(pattern, (found) => `\${${names.get(found)}}`)
}

/** `used`: the variables that the config file names, with their values. */
export const makeMask = (used: ReadonlyMap<string, string>): Mask => {
  const names = new Map<string, string>()
  for (const [name, value] of used)
    if (!isPlain(value))
      for (const form of formsOf(value))
        if (form.trim() !== "") names.set(form, names.get(form) ?? name)
  const long = [...names].filter(([form]) => form.length >= shortestInLog)
  return { text: replacer(names), line: replacer(new Map(long)) }
}
