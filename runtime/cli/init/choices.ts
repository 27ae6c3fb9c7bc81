import type { Parts } from "./parts.ts"

/** No database: keys stand in the config file, and nothing is billed. */
export const noDatabase = "none"

export interface Choices {
  /** Names of `kinds`. */
  readonly serve: readonly string[]
  /** Names of config/models, or paths of model files. */
  readonly models: readonly string[]
  readonly database: string
  readonly storage: string
}

/** The database that is chosen by default is the first. */
export const databasesOf = ({ databases }: Parts): readonly string[] => [
  ...Object.keys(databases),
  noDatabase,
]

/** Why one of the names is no known one. */
export const unknown = (
  flag: string,
  named: readonly string[],
  known: readonly string[],
): string | undefined => {
  const wrong = named.filter((name) => !known.includes(name))
  return wrong.length > 0
    ? `${flag}: there is no '${wrong.join("', '")}'. Fix: choose of ${known.join(", ")}.`
    : undefined
}

/** Why the choices do not fit together, and what would; undefined where they do. */
export const refusalOf = (parts: Parts, choices: Choices): string | undefined => {
  const { serve, models, database, storage } = choices
  const wrong =
    unknown("--serve", serve, Object.keys(parts.kinds)) ??
    unknown("--database", [database], databasesOf(parts)) ??
    unknown("--storage", [storage], Object.keys(parts.storages))
  if (wrong) return wrong
  if (serve.length === 0) return "--serve: nothing is to be served. Fix: --serve chat,embeddings"
  const needy = serve.filter((name) => parts.kinds[name]?.database)
  if (database === noDatabase && needy.length > 0)
    return `--database none: ${needy.join(", ")} can't do without one. Fix: --database embedded`
  const uses = ["chat", "embeddings", "rerank", "images", "audio", "retrieval"]
  if (models.length > 0 && !serve.some((name) => uses.includes(name)))
    return "--model: nothing that is served would use it. Fix: add chat to --serve."
  return undefined
}
