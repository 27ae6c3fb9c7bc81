import { existsSync, readdirSync, statSync } from "node:fs"
import { dirname, join } from "node:path"
import { fileURLToPath, pathToFileURL } from "node:url"

const here = dirname(dirname(fileURLToPath(import.meta.url)))
const root = dirname(dirname(here))
const compiledPlugin = join(root, "dist", "plugins", "backend-onnx")

const newestMs = (folder) =>
  readdirSync(folder, { withFileTypes: true }).reduce((latest, entry) => {
    const path = join(folder, entry.name)
    if (entry.isDirectory()) return Math.max(latest, newestMs(path))
    return entry.name.endsWith(".ts") && !entry.name.endsWith(".test.ts")
      ? Math.max(latest, statSync(path).mtimeMs)
      : latest
  }, 0)

const isFresh = (compiled) => {
  if (!existsSync(compiled)) return false
  const builtMs = statSync(compiled).mtimeMs
  return [here, join(root, "core")].every((folder) => newestMs(folder) <= builtMs)
}

/**
 * Node 20 can't load TypeScript as the entry of a thread. A loader costs each thread 0.4 s of work, more than all else in its start: so what was compiled
 * is taken, unless a source is newer.
 */
export const loadThread = async (name) => {
  const compiled = join(compiledPlugin, `${name}.js`)
  if (isFresh(compiled)) return import(pathToFileURL(compiled).href)
  const { register } = await import("tsx/esm/api")
  register()
  return import(`../${name}.ts`)
}
