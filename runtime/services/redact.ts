import type { Fields } from "../../core/services/log.ts"

const secretName =
  /^(authorization|proxy-authorization|cookie|set-cookie|x-api-key|api_?key|password|passwd|secret|client_?secret|credentials?|private_?key|bearer|jwt|access_?token|refresh_?token|session_?token)$/i
/** Finds secrets inside longer texts: bearer tokens, API keys, the password of a connection URL. */
const secretText =
  /(\bbearer\s+)[^\s"',;]+|\b((?:svc_(?:live|test)|whsec)_)[A-Za-z0-9]+|(\b[a-z][a-z0-9+.-]*:\/\/[^\s/:@]*:)[^\s/@]+(?=@)/gi
const mark = "[redacted]"
const maxDepth = 4

const text = (value: string): string =>
  value.replace(secretText, (_, bearer, key, url) => `${bearer ?? key ?? url}${mark}`)

const clean = (value: unknown, depth: number): unknown => {
  if (typeof value === "string") return text(value)
  if (typeof value === "bigint") return value.toString()
  if (value instanceof Error) return text(value.stack ?? String(value))
  if (typeof value !== "object" || value === null || value instanceof Date) return value
  if (depth === 0) return Array.isArray(value) ? "[array]" : "[object]"
  if (Array.isArray(value)) return value.map((item) => clean(item, depth - 1))
  return Object.fromEntries(
    Object.entries(value).map(([name, item]) => [
      name,
      secretName.test(name) && item !== undefined ? mark : clean(item, depth - 1),
    ]),
  )
}

/**
 * Masks fields with the names of secrets and texts that look like one, as the last guard before a
 * line is written. Cuts deep values.
 */
export const redact = (fields: Fields): Fields => clean(fields, maxDepth) as Fields

export const redactText = (message: string): string => text(message)
