import { readFileSync } from "node:fs"
import { dirname, isAbsolute, relative, resolve } from "node:path"
import { Result } from "effect"
import { LineCounter, parseDocument } from "yaml"
import { decodePart } from "./decode.ts"
import { type Environment, interpolate } from "./interpolate.ts"
import { type Mask, makeMask } from "./mask.ts"
import { ConfigError, formatProblem, type Locator, type Problem } from "./problems.ts"
import { DeploymentConfig, type ModelConfig } from "./schema.ts"

const maxConfigBytes = 1_000_000

export interface LoadedConfig {
  readonly deployment: DeploymentConfig
  /** Absolute. */
  readonly file: string
  readonly fromEnvironment: ReadonlySet<string>
  /** Hides values of the environment in what is printed. */
  readonly mask: Mask
  /** Makes a ConfigError with the line and column of each problem. */
  refuse(problems: readonly Problem[]): ConfigError
}

const shownPath = (file: string): string => {
  const near = relative(process.cwd(), file)
  return near.startsWith("..") ? file : near
}

const read = (file: string): string => {
  try {
    const text = readFileSync(file, "utf8")
    if (text.length > maxConfigBytes) throw new Error(`it is larger than ${maxConfigBytes} bytes`)
    return text
  } catch (cause) {
    const reason =
      (cause as NodeJS.ErrnoException).code === "ENOENT"
        ? "there is no such file"
        : (cause as Error).message
    throw new ConfigError([
      `${shownPath(file)}: can't be read: ${reason}.\n    Fix: name a config file, as in: rakit serve config/starter.yaml`,
    ])
  }
}

const parse = (file: string): Locator => {
  const lines = new LineCounter()
  const document = parseDocument(read(file), { lineCounter: lines, uniqueKeys: true })
  const where = { file: shownPath(file), document, lines }
  if (document.errors.length > 0)
    throw new ConfigError(
      document.errors.map(
        (error) =>
          `${where.file}:${error.linePos?.[0].line ?? 1}:${error.linePos?.[0].col ?? 1} ${error.message.split("\n")[0]}\n    Fix: correct the YAML (inside { } or [ ], write "\${NAME}" in quotes).`,
      ),
    )
  return where
}

const anchor = (url: string, folder: string): string =>
  url.startsWith("file:") && !isAbsolute(url.slice(5))
    ? `file:${resolve(folder, url.slice(5))}${url.endsWith("/") ? "/" : ""}`
    : url

type WithSources = Pick<ModelConfig, "sources">

/** `file:` sources are relative to the folder of what names them. */
export const anchorSources = <A extends WithSources>(entry: A, folder: string): A => ({
  ...entry,
  sources: entry.sources.map((source) => ({ ...source, url: anchor(source.url, folder) })),
})

export const anchorModel = (model: ModelConfig, folder: string): ModelConfig => ({
  ...anchorSources(model, folder),
  adapters: model.adapters.map((adapter) => anchorSources(adapter, folder)),
})

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

/**
 * Reads the file, replaces `${ENV}` and decodes it. Throws a ConfigError with all problems. Plugin
 * settings are decoded later.
 */
export const loadConfig = (path: string, env: Environment): LoadedConfig => {
  const file = resolve(path)
  const where = parse(file)
  const { value, fromEnvironment, used, missing } = interpolate(
    where.document.toJS({ maxAliasCount: 100 }) ?? {},
    env,
  )
  const mask = makeMask(used)
  const refuse = (problems: readonly Problem[]) =>
    new ConfigError(
      problems.map(({ path: at, message, fix }) =>
        formatProblem(where, { path: at, message: mask.text(message), fix: mask.text(fix) }),
      ),
    )
  if (missing.length > 0)
    throw refuse(
      missing.map(({ path: at, name }) => ({
        path: at,
        message: `the environment variable ${name} is not set`,
        fix: `set ${name}, or give a default: \${${name}:-...}`,
      })),
    )
  if (typeof value !== "object" || value === null || Array.isArray(value))
    throw refuse([
      { path: [], message: "a deployment is a map of keys", fix: "write keys, as in: plugins: {}" },
    ])
  const decoded = decodePart(DeploymentConfig, value, [], fromEnvironment)
  if (Result.isFailure(decoded)) throw refuse(decoded.failure)
  const models = decoded.success.models.map((model) => anchorModel(model, dirname(file)))
  const deployment = { ...decoded.success, models }
  const duplicates = duplicateModels(deployment)
  if (duplicates.length > 0) throw refuse(duplicates)
  return { deployment, file, fromEnvironment, mask, refuse }
}
