import { homedir } from "node:os"
import { join } from "node:path"
import { Result, Schema } from "effect"
import { urlOf } from "../../../../core/url.ts"
import type { Env, PullContext } from "../context.ts"
import { parseJson, readDocument } from "../download/web.ts"
import { SourceFailed, shownUrl } from "../failure.ts"
import { lastNameOf } from "../safe-path.ts"
import type { ResolvedSource } from "./artifact.ts"
import { parseIni, readConfigFile } from "./config-file.ts"

const publicIndex = "https://pypi.org/simple"

/** In pip's order; the later wins (pip documentation, "Configuration"). */
const configFiles = (env: Env): readonly string[] => {
  const home = env.HOME ?? homedir()
  const named = env.PIP_CONFIG_FILE
  if (named === "/dev/null") return []
  const user = [
    join(home, ".pip", "pip.conf"),
    join(env.XDG_CONFIG_HOME ?? join(home, ".config"), "pip", "pip.conf"),
  ]
  const environment = env.VIRTUAL_ENV ? [join(env.VIRTUAL_ENV, "pip.conf")] : []
  return ["/etc/pip.conf", ...user, ...environment, ...(named ? [named] : [])]
}

/**
 * The simple index that pip would use here, without a trailing slash. May contain a user and
 * password.
 */
export const pipIndex = async (env: Env): Promise<string> => {
  let index = env.PIP_INDEX_URL
  if (!index) {
    for (const path of configFiles(env)) {
      const sections = parseIni(await readConfigFile(path))
      index =
        sections.get("install")?.get("index-url") ??
        sections.get("global")?.get("index-url") ??
        index
    }
  }
  return (index || publicIndex).replace(/\/+$/, "")
}

interface IndexFile {
  readonly filename: string
  readonly url: string
  readonly sha256: string | undefined
}

// PEP 691, https://peps.python.org/pep-0691/
const Project = Schema.Struct({
  files: Schema.Array(
    Schema.Struct({
      filename: Schema.String,
      url: Schema.String,
      hashes: Schema.optionalKey(Schema.Record(Schema.String, Schema.String)),
    }),
  ),
})
const decodeProject = Schema.decodeUnknownResult(Project)

const fromJson = (text: string, pageUrl: string): readonly IndexFile[] => {
  const project = decodeProject(parseJson(text, pageUrl))
  if (Result.isFailure(project))
    throw new SourceFailed(`${shownUrl(pageUrl)} is not a package index`)
  return project.success.files.map(({ filename, url, hashes }) => ({
    filename,
    url: new URL(url, pageUrl).href,
    sha256: hashes?.sha256,
  }))
}

const entities: Readonly<Record<string, string>> = {
  amp: "&",
  lt: "<",
  gt: ">",
  quot: '"',
  "#39": "'",
  "#x27": "'",
}
const unescapeHtml = (text: string): string =>
  text.replace(/&(#?\w+);/g, (all, name: string) => entities[name.toLowerCase()] ?? all)

// PEP 503: one <a> per file, its digest in the fragment
const fromHtml = (text: string, pageUrl: string): readonly IndexFile[] => {
  const links = text.matchAll(/<a\s[^>]*?href\s*=\s*(?:"([^"]*)"|'([^']*)')/gi)
  return [...links].flatMap((match) => {
    const href = unescapeHtml(match[1] ?? match[2] ?? "")
    const url = urlOf(href, pageUrl)
    if (!url) return []
    const sha256 = /(?:^#|&)sha256=([0-9a-fA-F]{64})/.exec(url.hash)?.[1]
    url.hash = ""
    return [{ filename: lastNameOf(url.href), url: url.href, sha256 }]
  })
}

const normal = (name: string): string => name.toLowerCase().replace(/[-_.]+/g, "-")

/** `name-version(-build)?-python-abi-platform.whl` (PEP 427). */
const isWheelOf = (filename: string, name: string, version: string): boolean => {
  const parts = filename.replace(/\.whl$/, "").split("-")
  return (
    filename.endsWith(".whl") &&
    (parts.length === 5 || parts.length === 6) &&
    normal(parts[0] ?? "") === normal(name) &&
    parts[1]?.toLowerCase() === version.toLowerCase()
  )
}

const choose = (
  wheels: readonly IndexFile[],
  pinned: string | undefined,
): IndexFile | undefined => {
  if (pinned !== undefined) {
    const exact = wheels.find((wheel) => wheel.sha256?.toLowerCase() === pinned)
    if (exact) return exact
    const unknown = wheels.filter((wheel) => wheel.sha256 === undefined)
    if (unknown.length === 0)
      throw new SourceFailed(`the index has no wheel of this version with sha256 ${pinned}`)
    return choose(unknown, undefined)
  }
  return (
    wheels.find((wheel) => wheel.filename.endsWith("-py3-none-any.whl")) ??
    wheels.find((wheel) => wheel.filename.endsWith("-none-any.whl")) ??
    wheels[0]
  )
}

const accept =
  "application/vnd.pypi.simple.v1+json, application/vnd.pypi.simple.v1+html;q=0.2, text/html;q=0.1"

/** Files on the same host as the index take its user and password, as with pip. */
const withCredentialsOf = (url: string, index: string): string => {
  const from = new URL(index)
  const to = new URL(url)
  if (from.origin === to.origin && to.username === "") {
    to.username = from.username
    to.password = from.password
  }
  return to.href
}

/**
 * Finds the wheel of a release in the simple index (PEP 503, PEP 691). Fails with `SourceFailed`.
 */
export const resolvePypi = async (
  context: PullContext,
  name: string,
  version: string,
  pinned: string | undefined,
  signal: AbortSignal,
): Promise<ResolvedSource> => {
  const index = await pipIndex(context.env)
  const pageUrl = `${index}/${normal(name)}/`
  if (!urlOf(pageUrl)) throw new SourceFailed("pip's index-url is not a valid address")
  const page = await readDocument(context, { url: pageUrl, headers: { accept } }, signal)
  const isJson = page.headers.get("content-type")?.includes("json") ?? false
  const files = isJson ? fromJson(page.text, pageUrl) : fromHtml(page.text, pageUrl)
  const wheels = files.filter((file) => isWheelOf(file.filename, name, version))
  if (wheels.length === 0)
    throw new SourceFailed(`${shownUrl(pageUrl)} has no wheel of version ${version}`)
  const wheel = choose(wheels, pinned)!
  return {
    form: "zip",
    files: [
      {
        url: withCredentialsOf(wheel.url, index),
        headers: {},
        path: wheel.filename,
        sha256: pinned ?? wheel.sha256?.toLowerCase(),
      },
    ],
  }
}
