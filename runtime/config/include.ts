import { existsSync } from "node:fs"
import { dirname, isAbsolute, join, resolve } from "node:path"
import { Result, Schema } from "effect"
import { anchorModel } from "./anchor.ts"
import { decodePart } from "./decode.ts"
import { type Environment, type Interpolated, interpolate } from "./interpolate.ts"
import type { ConfigPath, Locator, Problem } from "./problems.ts"
import { readYaml } from "./read-yaml.ts"
import { type IncludeConfig, ModelConfig } from "./schema.ts"

/** A file of models that the config file includes. */
export interface IncludedFile extends Interpolated {
  readonly where: Locator
  /** Absolute. */
  readonly file: string
  /** What the config file says instead of the file. */
  readonly instead: Readonly<Record<string, unknown>>
}

/** The models of an included file, from index `first` on in the list of all. */
export interface IncludedModels {
  readonly where: Locator
  readonly first: number
  readonly models: readonly ModelConfig[]
}

/** The config folder of this package, which has ready-made models. */
const ownFolder = join(
  import.meta.dirname,
  ...(import.meta.url.endsWith(".js") ? ["..", "..", ".."] : ["..", ".."]),
  "config",
)

/** A name is looked up beside the config file, then in the config folder of this package. */
const fileOf = (name: string, folder: string): string => {
  const beside = resolve(folder, name)
  const isName = !isAbsolute(name) && !name.startsWith(".")
  return isName && !existsSync(beside) ? resolve(ownFolder, name) : beside
}

/** Reads the files and replaces `${ENV}`. Throws a ConfigError for one that can't be read. */
export const readIncluded = (
  items: readonly IncludeConfig[],
  folder: string,
  env: Environment,
): readonly IncludedFile[] =>
  items.map((item) => {
    const { file: name, ...instead } = typeof item === "string" ? { file: item } : item
    const file = fileOf(name, folder)
    const where = readYaml(
      file,
      `correct '${name}' under include: a name is looked up beside the config file, then among the ready-made ones (models/qwen3-0.6b.yaml ...).`,
    )
    return {
      where,
      file,
      instead,
      ...interpolate(where.document.toJS({ maxAliasCount: 100 }), env),
    }
  })

const IncludedSchema = Schema.Struct({
  $schema: Schema.optionalKey(Schema.String),
  models: Schema.Array(ModelConfig),
})

const withInstead = ({ value, instead }: IncludedFile): unknown => {
  const { models } = (value ?? {}) as { readonly models?: unknown }
  if (Object.keys(instead).length === 0 || !Array.isArray(models)) return value
  return { ...(value as object), models: models.map((model: object) => ({ ...model, ...instead })) }
}

/** The models of one file, with its overrides; or its problems, by paths in that file. */
export const modelsOf = (
  included: IncludedFile,
): Result.Result<readonly ModelConfig[], readonly Problem[]> => {
  const { fromEnvironment, file, instead } = included
  const decoded = decodePart(IncludedSchema, withInstead(included), [], fromEnvironment)
  if (Result.isFailure(decoded)) return Result.fail(decoded.failure)
  const { models } = decoded.success
  if (models.length > 1 && Object.keys(instead).length > 0)
    return Result.fail([
      {
        path: ["models"],
        message: `this file has ${models.length} models, and the config file sets ${Object.keys(instead).join(", ")} for one`,
        fix: "include it by its name alone, or split it.",
      },
    ])
  return Result.succeed(models.map((model) => anchorModel(model, dirname(file))))
}

/** Where a path of the merged deployment stands, if that is in an included file. */
export const locateIncluded = (
  included: readonly IncludedModels[],
  [key, index, ...rest]: ConfigPath,
): { readonly where: Locator; readonly path: ConfigPath } | undefined => {
  if (key !== "models" || typeof index !== "number") return undefined
  const found = included.find(
    ({ first, models }) => index >= first && index < first + models.length,
  )
  return found && { where: found.where, path: ["models", index - found.first, ...rest] }
}
