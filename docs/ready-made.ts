import { readdirSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { parse } from "yaml"

export const readyMadeFolder = join(import.meta.dirname, "..", "config", "models")

export const readyMadeFiles: readonly string[] = readdirSync(readyMadeFolder)
  .filter((name) => name.endsWith(".yaml"))
  .sort()

interface Entry {
  readonly id: string
  readonly task: "chat" | "embed" | "rerank" | "image" | "transcribe"
  readonly description: string
  readonly limits: { readonly contextTokens: number }
  readonly options?: Readonly<Record<string, string | number | boolean>>
  readonly sources: readonly { readonly url: string }[]
}

/** An entry of config/models with what its first line says of it. */
export const readModel = (file: string) => {
  const text = readFileSync(join(readyMadeFolder, file), "utf8")
  const { models } = parse(text) as { readonly models: readonly Entry[] }
  const [, name = "", licence = "", how = ""] =
    /^# (.+)\. Licence: (.+?)\. File: (.+)\.$/m.exec(text) ?? []
  return { text, models, entry: models[0]!, name, licence, how }
}

/** A link to the repository of an entry's first source, and the path of its files there. */
export const hubOf = ({ sources }: Entry) => {
  const [, repo = "", path = ""] = /^hf:([^@]+)@[^/]+\/(.+)$/.exec(sources[0]!.url) ?? []
  return { link: `[${repo}](https://huggingface.co/${repo})`, path }
}

const decimal = (bytes: number, unit: number): string =>
  (bytes / unit).toFixed(bytes < unit ? 2 : 1)
export const gigabytes = (bytes: number): string => `${decimal(bytes, 1e9)} GB`
export const count = (value: number): string => value.toLocaleString("en")
