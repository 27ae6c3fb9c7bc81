import { readdirSync, readFileSync } from "node:fs"
import { fileURLToPath } from "node:url"
import { parse } from "yaml"

/** This file runs from the sources or from `dist/`. */
const configFolder = fileURLToPath(
  new URL(
    import.meta.url.includes("/dist/") ? "../../../../config/" : "../../../config/",
    import.meta.url,
  ),
)

/** What a deployment can serve. */
interface Kind {
  readonly about: string
  readonly plugins: readonly string[]
  /** Needs accounts, files or jobs, which a database keeps. */
  readonly database?: boolean
}

/** The parts of a config file, as texts of YAML. */
export interface Parts {
  readonly kinds: Readonly<Record<string, Kind>>
  readonly head: string
  readonly databases: Readonly<Record<string, string>>
  readonly storages: Readonly<Record<string, string>>
  readonly withDatabase: string
  readonly withoutDatabase: string
  readonly always: string
  readonly entries: { readonly chat: string; readonly embed: string; readonly file: string }
}

export const readParts = (): Parts =>
  parse(readFileSync(`${configFolder}init/parts.yaml`, "utf8")) as Parts

/** The names of the entries that come with Rakit. */
export const knownModels = (): readonly string[] =>
  readdirSync(`${configFolder}models`)
    .filter((name) => name.endsWith(".yaml"))
    .map((name) => name.slice(0, -".yaml".length))
    .sort()

/** The same by their tasks, for who chooses. */
export const modelsByTask = (): ReadonlyMap<string, readonly string[]> => {
  const tasks = new Map<string, string[]>()
  for (const name of knownModels()) {
    const [, task = "chat"] = /^ +(?:- )?task: (\w+)/m.exec(knownModelText(name)) ?? []
    tasks.set(task, [...(tasks.get(task) ?? []), name])
  }
  return tasks
}

export const knownModelText = (name: string): string =>
  readFileSync(`${configFolder}models/${name}.yaml`, "utf8").trimEnd()
