import { createHash } from "node:crypto"
import { existsSync, readdirSync, readFileSync } from "node:fs"
import { bundled } from "./bundle.ts"

export interface Asset {
  readonly mediaType: string
  readonly bytes: Uint8Array
  readonly etag: string
}

export const assetRoot = "/dashboard/assets"

const mediaTypes: Readonly<Record<string, string>> = {
  html: "text/html; charset=utf-8",
  css: "text/css; charset=utf-8",
  js: "text/javascript; charset=utf-8",
  svg: "image/svg+xml",
}

/** What the dashboard's files are, without parameters. */
export const assetTypes: readonly string[] = Object.values(mediaTypes).map(
  (type) => type.split(";")[0]!,
)

export const makeAsset = (name: string, bytes: Uint8Array): Asset => ({
  mediaType: mediaTypes[name.slice(name.lastIndexOf(".") + 1)]!,
  bytes,
  etag: `"${createHash("sha256").update(bytes).digest("base64url").slice(0, 22)}"`,
})

/** What the build wrote beside the compiled plugin. */
const written = (): ReadonlyMap<string, Uint8Array> | undefined => {
  const folder = new URL("web/", import.meta.url)
  const isCompiled = import.meta.url.endsWith(".js") && existsSync(folder)
  if (!isCompiled) return undefined
  return new Map(readdirSync(folder).map((name) => [name, readFileSync(new URL(name, folder))]))
}

/**
 * Reads everything that is served below `assetRoot`, by name. Sources that run without a build are
 * bundled here. Later changes on disk are not served.
 */
export const loadAssets = (): ReadonlyMap<string, Asset> =>
  new Map([...(written() ?? bundled())].map(([name, bytes]) => [name, makeAsset(name, bytes)]))
