import { existsSync, readFileSync } from "node:fs"
import { fileURLToPath } from "node:url"

/** Assets lie beside the sources; the compiler does not copy them to `dist/`. */
const read = (name: string): Uint8Array => {
  const beside = fileURLToPath(new URL(name, import.meta.url))
  return readFileSync(existsSync(beside) ? beside : fileURLToPath(new URL(`../../../plugins/dashboard/${name}`, import.meta.url)))
}

export interface Asset {
  readonly id: string
  readonly path: string
  readonly mediaType: string
  readonly bytes: Uint8Array
}

export const loadAssets = (): readonly Asset[] => [
  { id: "dashboard", path: "/dashboard", mediaType: "text/html; charset=utf-8", bytes: read("page.html") },
  { id: "dashboard.style", path: "/dashboard/style.css", mediaType: "text/css; charset=utf-8", bytes: read("style.css") },
  { id: "dashboard.script", path: "/dashboard/page.js", mediaType: "text/javascript; charset=utf-8", bytes: read("page.js") },
]
