import { readFileSync } from "node:fs"
import { parse } from "yaml"
import type { Deployment } from "./deployment.ts"

interface ModelEntry {
  readonly id: string
  readonly [key: string]: unknown
}

export interface StarterConfig {
  readonly plugins: Readonly<Record<string, object>>
  readonly models: readonly ModelEntry[]
  readonly [key: string]: unknown
}

/**
 * The config of a deployment of `starter.yaml` whose models a bench replaces: without the packages
 * that bring a model, or a tower for one of them.
 */
export const starterConfigOf = ({ config: file }: Deployment): StarterConfig => {
  const config = parse(readFileSync(file, "utf8")) as StarterConfig
  const plugins = Object.entries(config.plugins).filter(([name]) => !name.startsWith("model-"))
  return { ...config, plugins: Object.fromEntries(plugins) }
}
