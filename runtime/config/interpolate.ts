import type { ConfigPath } from "./problems.ts"

export type Environment = Readonly<Record<string, string | undefined>>

export interface Interpolated {
  readonly value: unknown
  /** Paths (as JSON text) whose value came from the environment or from a default in `${}`. */
  readonly fromEnvironment: ReadonlySet<string>
  /** Variables whose values are in it, with these: see mask.ts. */
  readonly used: ReadonlyMap<string, string>
  readonly missing: readonly { readonly path: ConfigPath; readonly name: string }[]
}

const reference = /\$\$\{|\$\{([A-Za-z_][A-Za-z0-9_]*)(?::-((?:[^{}]|\{[^{}]*\})*))?\}/g

/** The operator's own folders: a refusal must name the one that can't be used. */
const isFolder = ([key, ...rest]: ConfigPath, value: string): boolean =>
  rest.length === 0 && (key === "dataDir" || key === "modelsDir") && value.includes("/")

/**
 * Replaces `${NAME}` and `${NAME:-default}` in all strings (an empty variable counts as unset, as
 * in a shell); `$${` is a plain `${`.
 */
export const interpolate = (input: unknown, env: Environment): Interpolated => {
  const fromEnvironment = new Set<string>()
  const used = new Map<string, string>()
  const missing: { path: ConfigPath; name: string }[] = []
  const text = (value: string, path: ConfigPath): string =>
    value.replace(reference, (whole, name: string | undefined, fallback: string | undefined) => {
      if (name === undefined) return "${"
      fromEnvironment.add(JSON.stringify(path))
      const found = env[name]
      if (found !== undefined && found !== "") {
        if (!isFolder(path, found)) used.set(name, found)
        return found
      }
      if (fallback !== undefined) return fallback
      missing.push({ path, name })
      return whole
    })
  const walk = (value: unknown, path: ConfigPath): unknown => {
    if (typeof value === "string") return text(value, path)
    if (Array.isArray(value)) return value.map((item, index) => walk(item, [...path, index]))
    if (typeof value === "object" && value !== null)
      return Object.fromEntries(
        Object.entries(value).map(([key, item]) => [key, walk(item, [...path, key])]),
      )
    return value
  }
  return { value: walk(input, []), fromEnvironment, used, missing }
}

/** `"8080"` -> 8080, `"true"` -> true; anything else stays text. */
export const retype = (text: string): string | number | boolean => {
  if (text === "true" || text === "false") return text === "true"
  return /^-?\d+(\.\d+)?$/.test(text) && Number.isFinite(Number(text)) ? Number(text) : text
}
