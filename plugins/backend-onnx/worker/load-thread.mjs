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
 * Imports a thread's module, named by its path in the plugin. Node 20 can't load TypeScript as the
 * entry of a thread, and a loader costs each thread 0.4 s: so the
 * compiled module is loaded, unless a source is newer.
 */
export const loadThread = async (name) => {
  const compiled = join(compiledPlugin, `${name}.js`)
  if (isFresh(compiled)) return import(pathToFileURL(compiled).href)
  const { register } = await import("tsx/esm/api")
  register()
  return import(`../${name}.ts`)
}
