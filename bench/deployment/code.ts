import { existsSync, readdirSync, statSync } from "node:fs"
import { join } from "node:path"
import { fileURLToPath, pathToFileURL } from "node:url"

export const root = fileURLToPath(new URL("../..", import.meta.url))

const newestMs = (folder: string): number =>
  readdirSync(folder, { recursive: true, encoding: "utf8" })
    .filter((name) => name.endsWith(".ts") && !name.endsWith(".test.ts"))
    .reduce((newest, name) => Math.max(newest, statSync(join(folder, name)).mtimeMs), 0)

const builtMs = (): number =>
  statSync(join(root, "dist/runtime/cli.js"), { throwIfNoEntry: false })?.mtimeMs ?? 0

/** The same rule as runtime/rakit.js: `dist/` is used only while no source is newer. */
export const isCompiled: boolean =
  existsSync(join(root, "dist")) &&
  ["core", "plugins", "runtime", "testing"].every(
    (folder) => newestMs(join(root, folder)) <= builtMs(),
  )

export const codeInWords = isCompiled
  ? "compiled (dist/)"
  : "SOURCES THROUGH TSX, slower than what users run: dist/ is missing or stale, run `npm run build`"

/** `core/call` -> the file that is measured. */
export const fileOf = (module: string): string =>
  join(root, isCompiled ? `dist/${module}.js` : `${module}.ts`)

/**
 * Measured code is what users run; tsx is for the bench itself. Its types come from the source:
 * `load<typeof import("../../core/call.ts")>("core/call")`.
 */
export const load = <Module>(module: string): Promise<Module> =>
  import(pathToFileURL(fileOf(module)).href) as Promise<Module>
