import { dirname, resolve } from "node:path"
import { Result } from "effect"
import { anchorModel } from "./anchor.ts"
import { decodePart } from "./decode.ts"
import { type IncludedModels, locateIncluded, modelsOf, readIncluded } from "./include.ts"
import { type Environment, type Interpolated, interpolate } from "./interpolate.ts"
import { type Mask, makeMask } from "./mask.ts"
import {
  ConfigError,
  type ConfigPath,
  formatProblem,
  type Locator,
  type Problem,
} from "./problems.ts"
import { readYaml } from "./read-yaml.ts"
import { DeploymentConfig, IncludeList } from "./schema.ts"

export interface LoadedConfig {
  readonly deployment: DeploymentConfig
  /** Absolute. */
  readonly file: string
  readonly fromEnvironment: ReadonlySet<string>
  /** Hides values of the environment in what is printed. */
  readonly mask: Mask
  /** The included file that has the model of this index; undefined for the config file itself. */
  includedFrom(index: number): string | undefined
  /** Makes a ConfigError with the line and column of each problem. */
  refuse(problems: readonly Problem[]): ConfigError
}

const duplicateModels = (deployment: DeploymentConfig): readonly Problem[] =>
  deployment.models.flatMap((model, index) =>
    deployment.models.findIndex((other) => other.id === model.id) < index
      ? [
          {
            path: ["models", index, "id"],
            message: `the model '${model.id}' is listed twice`,
            fix: "remove one of the two, or give it another id.",
          },
        ]
      : [],
  )

const unsetVariable = ({ path, name }: Interpolated["missing"][number]): Problem => ({
  path,
  message: `the environment variable ${name} is not set`,
  fix: `set ${name}, or give a default: \${${name}:-...}`,
})

/** The paths of an included file's models, which stand from `first` on in the list of all. */
const pathsIn = (paths: ReadonlySet<string>, first: number): readonly string[] =>
  Array.from(paths, (text) => {
    const [key, index, ...rest] = JSON.parse(text) as readonly [string, number?, ...unknown[]]
    return JSON.stringify([key, Number(index) + first, ...rest])
  })

/**
 * Reads the file, replaces `${ENV}` and decodes it. Throws a ConfigError with all problems. Plugin
 * settings are decoded later.
 */
export const loadConfig = (path: string, env: Environment): LoadedConfig => {
  const file = resolve(path)
  const where = readYaml(file)
  const own = interpolate(where.document.toJS({ maxAliasCount: 100 }) ?? {}, env)
  const { value } = own
  const fromEnvironment = new Set(own.fromEnvironment)
  const isMap = typeof value === "object" && value !== null && !Array.isArray(value)
  const list = decodePart(
    IncludeList,
    (isMap && (value as { readonly include?: unknown }).include) || [],
    ["include"],
    fromEnvironment,
  )
  const files = Result.isSuccess(list) ? readIncluded(list.success, dirname(file), env) : []
  const mask = makeMask(new Map([own, ...files].flatMap(({ used }) => [...used])))
  const refuseIn = (
    problems: readonly Problem[],
    placeOf: (path: ConfigPath) => { readonly where: Locator; readonly path: ConfigPath },
  ) =>
    new ConfigError(
      problems.map(({ path: at, message, fix }) => {
        const place = placeOf(at)
        const shown = { path: place.path, message: mask.text(message), fix: mask.text(fix) }
        return formatProblem(place.where, shown)
      }),
    )
  const included: IncludedModels[] = []
  const refuse = (problems: readonly Problem[]) =>
    refuseIn(problems, (at) => locateIncluded(included, at) ?? { where, path: at })
  for (const one of [{ where, missing: own.missing }, ...files])
    if (one.missing.length > 0)
      throw refuseIn(one.missing.map(unsetVariable), (at) => ({ where: one.where, path: at }))
  if (!isMap)
    throw refuse([
      { path: [], message: "a deployment is a map of keys", fix: "write keys, as in: plugins: {}" },
    ])
  const decoded = decodePart(DeploymentConfig, value, [], fromEnvironment)
  if (Result.isFailure(decoded)) throw refuse(decoded.failure)
  const models = decoded.success.models.map((model) => anchorModel(model, dirname(file)))
  for (const one of files) {
    const more = modelsOf(one)
    if (Result.isFailure(more))
      throw refuseIn(more.failure, (at) => ({ where: one.where, path: at }))
    included.push({ where: one.where, first: models.length, models: more.success })
    for (const path of pathsIn(one.fromEnvironment, models.length)) fromEnvironment.add(path)
    models.push(...more.success)
  }
  const deployment = { ...decoded.success, models }
  const duplicates = duplicateModels(deployment)
  if (duplicates.length > 0) throw refuse(duplicates)
  const includedFrom = (index: number) => locateIncluded(included, ["models", index])?.where.file
  return { deployment, file, fromEnvironment, mask, includedFrom, refuse }
}
