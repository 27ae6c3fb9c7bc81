import { isAbsolute, resolve } from "node:path"
import type { ModelConfig } from "./schema.ts"

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
