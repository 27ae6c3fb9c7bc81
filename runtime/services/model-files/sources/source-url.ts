import { fileURLToPath } from "node:url"
import { Result } from "effect"
import { urlOf } from "../../../../core/url.ts"
import { isSafePath } from "../safe-path.ts"

/** A path in an archive, repository or folder. An empty path with `folder` means all of it. */
interface PathInside {
  /** Without a trailing slash. */
  readonly path: string
  readonly folder: boolean
}

export type SourceUrl =
  | ({ readonly scheme: "pypi"; readonly name: string; readonly version: string } & PathInside)
  | ({ readonly scheme: "npm"; readonly name: string; readonly version: string } & PathInside)
  | ({
      readonly scheme: "hf"
      readonly repo: string
      readonly revision: string
      /** Patterns of the files of a folder that are taken; `*` is any part of a name. Absent: all. */
      readonly only?: readonly string[]
    } & PathInside)
  | { readonly scheme: "web"; readonly url: string }
  | { readonly scheme: "file"; readonly path: string }

type Parsed = Result.Result<SourceUrl, string>

const inside = (text: string): Result.Result<PathInside, string> => {
  const folder = text === "" || text.endsWith("/")
  const path = text.endsWith("/") ? text.slice(0, -1) : text
  if (path !== "" && !isSafePath(path))
    return Result.fail(`the path "${text}" must be relative and plain, such as "folder/model.gguf"`)
  return Result.succeed({ path, folder })
}

const parsePypi = (rest: string): Parsed => {
  const match =
    /^([A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?)==([A-Za-z0-9][A-Za-z0-9.!+_-]*)\/(.*)$/s.exec(
      rest,
    )
  if (!match) return Result.fail("write it as pypi:package==version/path/in/the/wheel")
  const [, name = "", version = "", path = ""] = match
  return Result.map(inside(path), (where) => ({ scheme: "pypi", name, version, ...where }))
}

const parseNpm = (rest: string): Parsed => {
  const match =
    /^((?:@[a-z0-9~_-][a-z0-9._~-]*\/)?[A-Za-z0-9~_-][A-Za-z0-9._~-]*)@(\d+\.\d+\.\d+[0-9A-Za-z.+-]*)\/(.*)$/s.exec(
      rest,
    )
  if (!match) return Result.fail("write it as npm:package@1.2.3/path/in/the/package")
  const [, name = "", version = "", path = ""] = match
  return Result.map(inside(path), (where) => ({ scheme: "npm", name, version, ...where }))
}

/** A folder's files by patterns: `folder/{*.json,part/model.safetensors}`. */
const someInside = (text: string): Result.Result<PathInside & { only?: string[] }, string> => {
  const [, folder = "", patterns] = /^(.*\/)?\{([^{}]*)\}$/s.exec(text) ?? []
  if (patterns === undefined) return inside(text)
  const only = patterns.split(",")
  const wrong = only.find((pattern) => !isSafePath(pattern))
  if (wrong !== undefined || only.length > 16)
    return Result.fail(
      `write the files of a folder as {*.json,part/model.safetensors}, at most 16, not "${text}"`,
    )
  return Result.map(inside(folder), (where) => ({ ...where, only }))
}

/** Takes all parts of a GGUF file, whichever is named: `folder/{x-0*-of-00003.gguf}`. */
const allParts = (path: string): string =>
  path.replace(/(^|\/)([^/{},*]+)-\d{5}(-of-(?!00001)\d{5}\.gguf)$/s, "$1{$2-0*$3}")

const parseHub = (rest: string): Parsed => {
  const match =
    /^([A-Za-z0-9][A-Za-z0-9._-]*\/[A-Za-z0-9][A-Za-z0-9._-]*)@([A-Za-z0-9][A-Za-z0-9._-]*)\/(.*)$/s.exec(
      rest,
    )
  if (!match) return Result.fail("write it as hf:owner/repo@revision/path")
  const [, repo = "", revision = "", path = ""] = match
  return Result.map(someInside(allParts(path)), (where) => ({
    scheme: "hf",
    repo,
    revision,
    ...where,
  }))
}

const parseWeb = (url: string): Parsed => {
  const parsed = urlOf(url)
  if (!parsed) return Result.fail("it is not a valid web address")
  const { hostname, pathname } = parsed
  if (hostname === "" || pathname.endsWith("/"))
    return Result.fail("a web address must name one file")
  return Result.succeed({ scheme: "web", url })
}

const parseFile = (rest: string): Parsed => {
  if (rest === "" || rest.includes("\0"))
    return Result.fail("write it as file:/absolute/path or file:relative/path")
  if (!rest.startsWith("//")) return Result.succeed({ scheme: "file", path: rest })
  try {
    return Result.succeed({ scheme: "file", path: fileURLToPath(`file:${rest}`) })
  } catch {
    return Result.fail("a file address must be local: file:///absolute/path")
  }
}

/** Parses the `url` of a source. The failure says how to write it. */
export const parseSourceUrl = (url: string): Parsed => {
  const [, scheme = "", rest = ""] = /^([a-z]+):(.*)$/s.exec(url) ?? []
  if (scheme === "pypi") return parsePypi(rest)
  if (scheme === "npm") return parseNpm(rest)
  if (scheme === "hf") return parseHub(rest)
  if (scheme === "https" || scheme === "http") return parseWeb(url)
  if (scheme === "file") return parseFile(rest)
  return Result.fail("it must begin with pypi:, npm:, hf:, https: or file:")
}

const formatInside = ({ path, folder }: PathInside): string =>
  folder && path !== "" ? `${path}/` : path

export const formatSourceUrl = (source: SourceUrl): string => {
  switch (source.scheme) {
    case "pypi":
      return `pypi:${source.name}==${source.version}/${formatInside(source)}`
    case "npm":
      return `npm:${source.name}@${source.version}/${formatInside(source)}`
    case "hf":
      return `hf:${source.repo}@${source.revision}/${formatInside(source)}${source.only ? `{${source.only.join()}}` : ""}`
    case "web":
      return source.url
    case "file":
      return `file:${source.path}`
  }
}
