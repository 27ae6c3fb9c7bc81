import { isAbsolute, resolve } from "node:path"
import type { ModelConfig } from "./schema.ts"

/** A plain path: `./models/x.gguf`, `../x.gguf`, `/models/x.gguf`. */
const asFile = (url: string): string => (/^\.{0,2}\//.test(url) ? `file:${url}` : url)

const anchor = (source: string, folder: string): string => {
  const url = asFile(source)
  return url.startsWith("file:") && !isAbsolute(url.slice(5))
    ? `file:${resolve(folder, url.slice(5))}${url.endsWith("/") ? "/" : ""}`
    : url
}

type WithSources = Pick<ModelConfig, "sources">

/** Paths and `file:` sources are relative to the folder of what names them. */
export const anchorSources = <A extends WithSources>(entry: A, folder: string): A => ({
  ...entry,
  sources: entry.sources.map((source) => ({ ...source, url: anchor(source.url, folder) })),
})

export const anchorModel = (model: ModelConfig, folder: string): ModelConfig => ({
  ...anchorSources(model, folder),
  adapters: model.adapters.map((adapter) => anchorSources(adapter, folder)),
})
