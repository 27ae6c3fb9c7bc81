import type { Json } from "../../core/index.ts"

type Fields = Readonly<Record<string, Json>>

const isFields = (value: Json): value is Fields =>
  typeof value === "object" && value !== null && !Array.isArray(value)

/**
 * Returns the fields that differ, for the audit log; nested objects are compared field by field.
 * Undefined when none differs.
 */
export const changedFields = (
  before: Fields,
  after: Fields,
): { readonly before: Fields; readonly after: Fields } | undefined => {
  const old: Record<string, Json> = {}
  const now: Record<string, Json> = {}
  for (const name of Object.keys(after)) {
    const [a, b] = [before[name], after[name]]
    if (isFields(a) && isFields(b)) {
      const inner = changedFields(a, b)
      if (inner) [old[name], now[name]] = [inner.before, inner.after]
    } else if (JSON.stringify(a) !== JSON.stringify(b)) [old[name], now[name]] = [a, b]
  }
  return Object.keys(now).length > 0 ? { before: old, after: now } : undefined
}
