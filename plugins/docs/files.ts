import { createHash } from "node:crypto"
import { existsSync, readdirSync, readFileSync } from "node:fs"
import { join, sep } from "node:path"
import { fileURLToPath } from "node:url"

/** A file as it is served. */
export interface ServedFile {
  readonly mediaType: string
  readonly bytes: Uint8Array
  readonly etag: string
}
/** By the path below the folder, with `/`. */
export type ServedFiles = ReadonlyMap<string, ServedFile>

const mediaTypes: Readonly<Record<string, string>> = {
  html: "text/html; charset=utf-8",
  css: "text/css; charset=utf-8",
  js: "text/javascript; charset=utf-8",
  json: "application/json; charset=utf-8",
  svg: "image/svg+xml",
  webp: "image/webp",
  png: "image/png",
  woff2: "font/woff2",
}

/** Every media type that is served, without parameters. */
export const servedTypes: readonly string[] = Object.values(mediaTypes).map(
  (type) => type.split(";")[0]!,
)

/** The package's folder, from the sources and from the compiled copy of this module. */
const root = fileURLToPath(
  new URL(import.meta.url.endsWith(".ts") ? "../.." : "../../..", import.meta.url),
)

/** What a build leaves in `dist/`. */
export const builtFolder = (name: string): string => join(root, "dist", name)

/** The page's own files are stored beside the sources; the compiler does not copy them. */
export const ownFolder = join(root, "plugins", "docs", "web")

/** @returns undefined for a file of a type that is not served. */
export const servedFile = (name: string, bytes: Uint8Array): ServedFile | undefined => {
  const mediaType = mediaTypes[name.slice(name.lastIndexOf(".") + 1)]
  if (mediaType === undefined) return undefined
  const etag = `"${createHash("sha256").update(bytes).digest("base64url").slice(0, 22)}"`
  return { mediaType, bytes, etag }
}

/** All files of a folder and of those in it; none where it is missing. Later changes are not seen. */
export const loadFolder = (folder: string): ServedFiles =>
  new Map(
    (existsSync(folder) ? readdirSync(folder, { recursive: true, withFileTypes: true }) : [])
      .filter((entry) => entry.isFile())
      .flatMap((entry) => {
        const path = join(entry.parentPath, entry.name)
        const file = servedFile(entry.name, readFileSync(path))
        return file ? [[path.slice(folder.length + 1).replaceAll(sep, "/"), file] as const] : []
      }),
  )

/** The hashes of a page's inline scripts, as a policy names them. */
export const inlineScripts = (html: string): readonly string[] =>
  [...html.matchAll(/<script(?![^>]*\ssrc=)[^>]*>([\s\S]*?)<\/script>/g)].map(
    ([, code]) => `'sha256-${createHash("sha256").update(code!).digest("base64")}'`,
  )
