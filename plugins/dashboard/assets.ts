import { createHash } from "node:crypto"
import { existsSync, readFileSync } from "node:fs"
import { createRequire } from "node:module"
import { dirname, join } from "node:path"
import { fileURLToPath } from "node:url"
import { ownFiles, packageFiles, packageStyle } from "./asset-list.ts"

export interface Asset {
  readonly mediaType: string
  readonly bytes: Uint8Array
  readonly etag: string
}

export const assetRoot = "/dashboard/assets"

/** The page's files are stored beside the sources; the compiler does not copy them to `dist/`. */
const folderOf = (name: string): string => {
  const beside = fileURLToPath(new URL(name, import.meta.url))
  return existsSync(beside)
    ? beside
    : fileURLToPath(new URL(`../../../plugins/dashboard/${name}`, import.meta.url))
}

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

/** Source maps are not served, so nothing may request them. */
const withoutSourceMap = (text: string): string =>
  text.replace(/\n?\/\/# sourceMappingURL=\S+\s*$/, "\n")

const packageSources = (): Readonly<Record<string, string>> => {
  const { resolve } = createRequire(import.meta.url)
  return {
    [packageFiles.preact]: resolve("preact"),
    [packageFiles["preact/hooks"]]: resolve("preact/hooks"),
    // `require` resolves to the build for Node; the ES module is beside it
    [packageFiles.htm]: join(dirname(resolve("htm")), "htm.module.js"),
    [packageFiles.uplot]: resolve("uplot/dist/uPlot.esm.js"),
    [packageStyle]: resolve("uplot/dist/uPlot.min.css"),
  }
}

/**
 * Reads everything that is served below `assetRoot`, by name. Later changes on disk are not served.
 */
export const loadAssets = (): ReadonlyMap<string, Asset> => {
  const folder = folderOf("web/")
  const own = ownFiles.map(
    (name) => [name, makeAsset(name, readFileSync(join(folder, name)))] as const,
  )
  const packages = Object.entries(packageSources()).map(
    ([name, path]) =>
      [name, makeAsset(name, Buffer.from(withoutSourceMap(readFileSync(path, "utf8"))))] as const,
  )
  return new Map([...own, ...packages])
}
