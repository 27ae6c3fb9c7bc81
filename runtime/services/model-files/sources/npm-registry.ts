import { homedir } from "node:os"
import { join } from "node:path"
import type { Env } from "../context.ts"
import { parseIni, readConfigFile } from "./config-file.ts"

export const publicRegistry = "https://registry.npmjs.org"

export interface NpmRegistry {
  /** Without a slash at the end. */
  readonly url: string
  readonly authorization: string | undefined
}

const fromEnv = (env: Env, name: string): string | undefined =>
  env[`npm_config_${name}`] ?? env[`NPM_CONFIG_${name.toUpperCase()}`]

/** `${NAME}` in an .npmrc is a variable of the environment. */
const expand = (value: string, env: Env): string =>
  value.replace(/\$\{([^}]+)\}/g, (all, name: string) => env[name] ?? all)

/** The settings of all .npmrc files; project over user over global (npm documentation, "npmrc"). */
const npmrc = async (env: Env, cwd: string): Promise<ReadonlyMap<string, string>> => {
  const home = env.HOME ?? homedir()
  const files = [
    fromEnv(env, "globalconfig") ?? "/etc/npmrc",
    fromEnv(env, "userconfig") ?? join(home, ".npmrc"),
    join(cwd, ".npmrc"),
  ]
  const merged = new Map<string, string>()
  for (const path of files)
    for (const [key, value] of parseIni(await readConfigFile(path)).get("") ?? [])
      merged.set(key, expand(value, env).replace(/^"(.*)"$/, "$1"))
  return merged
}

/** The token that the settings name for this registry, or for a folder above it. */
const authorizationFor = (
  registry: string,
  settings: ReadonlyMap<string, string>,
): string | undefined => {
  if (!URL.canParse(registry)) return undefined
  const { host, pathname } = new URL(registry)
  const parts = pathname.split("/").filter((part) => part !== "")
  for (let depth = parts.length; depth >= 0; depth -= 1) {
    const place = `//${[host, ...parts.slice(0, depth)].join("/")}/`
    const token = settings.get(`${place}:_authToken`)
    if (token) return `Bearer ${token}`
    const basic = settings.get(`${place}:_auth`)
    if (basic) return `Basic ${basic}`
  }
  return undefined
}

/** The registry that npm would ask here for this package. */
export const npmRegistry = async (
  env: Env,
  cwd: string,
  packageName: string,
): Promise<NpmRegistry> => {
  const settings = await npmrc(env, cwd)
  const scope = packageName.startsWith("@") ? packageName.split("/")[0] : undefined
  const scoped = scope && settings.get(`${scope}:registry`)
  const url = (
    scoped ||
    fromEnv(env, "registry") ||
    settings.get("registry") ||
    publicRegistry
  ).replace(/\/+$/, "")
  return { url, authorization: authorizationFor(url, settings) }
}
