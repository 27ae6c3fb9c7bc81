import { homedir } from "node:os"
import { join } from "node:path"
import { Result, Schema } from "effect"
import { urlOf } from "../../../../core/url.ts"
import type { Env, PullContext } from "../context.ts"
import { parseJson, readDocument } from "../download/web.ts"
import { SourceFailed, shownUrl } from "../failure.ts"
import type { ResolvedSource } from "./artifact.ts"
import { parseIni, readConfigFile } from "./config-file.ts"

const publicRegistry = "https://registry.npmjs.org"

interface NpmRegistry {
  /** Without a trailing slash. */
  readonly url: string
  readonly authorization: string | undefined
}

const fromEnv = (env: Env, name: string): string | undefined =>
  env[`npm_config_${name}`] ?? env[`NPM_CONFIG_${name.toUpperCase()}`]

/** Replaces `${NAME}` by the environment variable, as npm does. */
const expand = (value: string, env: Env): string =>
  value.replace(/\$\{([^}]+)\}/g, (all, name: string) => env[name] ?? all)

/** Merges all .npmrc files: project over user over global (npm documentation, "npmrc"). */
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

/** The credentials for this registry, or for a parent path of it. */
const authorizationFor = (
  registry: string,
  settings: ReadonlyMap<string, string>,
): string | undefined => {
  const url = urlOf(registry)
  if (!url) return undefined
  const { host, pathname } = url
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

/** The registry that npm would use here for this package. */
const npmRegistry = async (env: Env, cwd: string, packageName: string): Promise<NpmRegistry> => {
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

const Release = Schema.Struct({ dist: Schema.Struct({ tarball: Schema.String }) })
const decodeRelease = Schema.decodeUnknownResult(Release)
const decodePackage = Schema.decodeUnknownResult(
  Schema.Struct({ versions: Schema.Record(Schema.String, Schema.Unknown) }),
)

/** The document of one version is small, but not every registry serves it. */
const askVersion = async (
  context: PullContext,
  registry: NpmRegistry,
  name: string,
  version: string,
  signal: AbortSignal,
): Promise<unknown> => {
  const url = `${registry.url}/${encodeURIComponent(name).replace(/^%40/, "@")}/${version}`
  const reply = await readDocument(
    context,
    { url, headers: authorized(registry) },
    signal,
    [404, 405],
  )
  return reply.status === 200 ? parseJson(reply.text, url) : undefined
}

const askPackage = async (
  context: PullContext,
  registry: NpmRegistry,
  name: string,
  version: string,
  signal: AbortSignal,
): Promise<unknown> => {
  const url = `${registry.url}/${encodeURIComponent(name).replace(/^%40/, "@")}`
  const accept = "application/vnd.npm.install-v1+json, application/json;q=0.5"
  const found = decodePackage(
    parseJson(
      (await readDocument(context, { url, headers: { accept, ...authorized(registry) } }, signal))
        .text,
      url,
    ),
  )
  const release = Result.isSuccess(found) ? found.success.versions[version] : undefined
  if (release === undefined) throw new SourceFailed(`${shownUrl(url)} has no version ${version}`)
  return release
}

const authorized = ({ authorization }: NpmRegistry): Readonly<Record<string, string>> =>
  authorization === undefined ? {} : { authorization }

/**
 * Replaces the public registry's address by the configured one, as npm does: mirrors often keep it
 * in their documents.
 */
const onThisRegistry = (tarball: string, registry: string): string => {
  const url = new URL(tarball, `${registry}/`)
  const own = new URL(registry)
  if (url.origin !== publicRegistry || own.origin === publicRegistry) return url.href
  return `${registry}${url.pathname}`
}

/** Finds the tarball of a published version. Fails with `SourceFailed`. */
export const resolveNpm = async (
  context: PullContext,
  name: string,
  version: string,
  pinned: string | undefined,
  signal: AbortSignal,
): Promise<ResolvedSource> => {
  const registry = await npmRegistry(context.env, context.cwd, name)
  if (!urlOf(registry.url)) throw new SourceFailed("npm's registry is not a valid address")
  const release = decodeRelease(
    (await askVersion(context, registry, name, version, signal)) ??
      (await askPackage(context, registry, name, version, signal)),
  )
  if (Result.isFailure(release))
    throw new SourceFailed(`${shownUrl(registry.url)} named no tarball`)
  const url = onThisRegistry(release.success.dist.tarball, registry.url)
  const headers = new URL(url).origin === new URL(registry.url).origin ? authorized(registry) : {}
  return { form: "tgz", files: [{ url, headers, path: "package.tgz", sha256: pinned }] }
}
