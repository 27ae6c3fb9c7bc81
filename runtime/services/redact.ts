import type { Fields } from "../../core/services/log.ts"

const secretName =
  /^(authorization|proxy-authorization|cookie|set-cookie|x-api-key|api_?key|password|passwd|secret|client_?secret|credentials?|private_?key|bearer|jwt|access_?token|refresh_?token|session_?token)$/i
/** Finds secrets inside longer texts: bearer tokens, API keys, the password of a connection URL. */
const secretText =
  /(\bbearer\s+)[^\s"',;]+|\b((?:svc_(?:live|test)|whsec)_)[A-Za-z0-9]+|(\b[a-z][a-z0-9+.-]{0,30}:\/\/[^\s/:@]*:)[^\s/@]+(?=@)/gi
/** What each of those texts has, also in JSON, in lower case. */
const secretHints = ["bearer", "svc_live_", "svc_test_", "whsec_", "://"]
const mark = "[redacted]"
const maxDepth = 4

const text = (value: string): string =>
  value.replace(secretText, (_, bearer, key, url) => `${bearer ?? key ?? url}${mark}`)

/** The names of fields are the code's own and few; those of a client's making are not kept. */
const maxKnownNames = 1_000
const knownNames = new Map<string, boolean>()

const isSecretName = (name: string): boolean => {
  const known = knownNames.get(name)
  if (known !== undefined) return known
  const isSecret = secretName.test(name)
  if (knownNames.size < maxKnownNames) knownNames.set(name, isSecret)
  return isSecret
}

const clean = (value: unknown, depth: number, ofText: (value: string) => string): unknown => {
  if (typeof value === "string") return ofText(value)
  if (typeof value === "bigint") return value.toString()
  if (value instanceof Error) return ofText(value.stack ?? String(value))
  if (typeof value !== "object" || value === null || value instanceof Date) return value
  if (depth === 0) return Array.isArray(value) ? "[array]" : "[object]"
  if (Array.isArray(value)) return value.map((item) => clean(item, depth - 1, ofText))
  const cleaned: Record<string, unknown> = {}
  for (const [name, item] of Object.entries(value))
    cleaned[name] = isSecretName(name) && item !== undefined ? mark : clean(item, depth - 1, ofText)
  return cleaned
}

/**
 * Masks fields with the names of secrets and texts that look like one, as the last guard before a
 * line is written. Cuts deep values.
 */
export const redact = (fields: Fields): Fields => clean(fields, maxDepth, text) as Fields

/** Whether `clean` would leave it as it is, texts aside: nearly every line of the log. */
const isClean = (value: unknown, depth: number): boolean => {
  if (typeof value !== "object" || value === null) return typeof value !== "bigint"
  if (depth === 0 || value instanceof Error || "toJSON" in value) return false
  if (Array.isArray(value)) return value.every((item) => isClean(item, depth - 1))
  for (const name in value)
    if (isSecretName(name) || !isClean((value as Fields)[name], depth - 1)) return false
  return true
}

/** The same, without looking into texts: for a line that is searched as a whole. */
export const redactNames = (fields: Fields): Fields =>
  isClean(fields, maxDepth) ? fields : (clean(fields, maxDepth, (value) => value) as Fields)

export const redactText = (message: string): string => text(message)

/** Whether any text in the JSON line may be one that `redact` changes. */
export const mayHoldSecret = (line: string): boolean => {
  const lower = line.toLowerCase()
  return secretHints.some((hint) => lower.includes(hint))
}
