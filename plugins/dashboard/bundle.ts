import { existsSync } from "node:fs"
import { createRequire } from "node:module"
import { basename, join } from "node:path"
import { fileURLToPath } from "node:url"

/** The page's files are stored beside the sources; the compiler does not copy them to `dist/`. */
const sources = (name = "web/"): string => {
  const beside = fileURLToPath(new URL(name, import.meta.url))
  return existsSync(join(beside, "main.js"))
    ? beside
    : fileURLToPath(new URL(`../../../plugins/dashboard/${name}`, import.meta.url))
}

/**
 * Bundles the page's modules, styles and icon: bytes by name, `NAME-HASH.js|css|svg`. The entries are
 * `main`, `styles` and `icon`; what is imported when it is needed (the chart) has a file of its own.
 */
export const bundled = (): ReadonlyMap<string, Uint8Array> => {
  const web = sources()
  // required here, as a compiled server has the bundle and needs no bundler
  const { buildSync } = createRequire(import.meta.url)("esbuild") as typeof import("esbuild")
  const { outputFiles } = buildSync({
    absWorkingDir: web,
    entryPoints: { main: "main.js", styles: "styles.css", icon: "icon.svg" },
    loader: { ".svg": "copy" },
    bundle: true,
    splitting: true,
    minify: true,
    write: false,
    format: "esm",
    target: "es2022",
    legalComments: "none",
    logLevel: "error",
    outdir: join(web, "out"),
    entryNames: "[name]-[hash]",
    chunkNames: "[name]-[hash]",
  })
  return new Map(outputFiles.map(({ path, contents }) => [basename(path), contents]))
}
