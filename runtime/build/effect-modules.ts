// A step of `npm run build`: dist/ imports the modules of effect that it uses, where the sources
// import them by the package's one name. That one loads all 144 modules: some 60 ms of each start and
// 3 MB of each server.
import { readdirSync, readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"

const fromPackage = /^import \{([^}]*)\} from "effect";/gm

/**
 * Returns the text with an import of each module: the package exports a module under its own name.
 * The number of lines stays, for source maps.
 */
export const withModules = (text: string): string =>
  text.replace(fromPackage, (statement, names: string) => {
    const imports = names
      .split(",")
      .map((name) => name.trim())
      .filter((name) => name !== "")
      .map((name) => `import * as ${name} from "effect/${name}";`)
    return imports.join(" ") + statement.replace(/[^\n]/g, "")
  })

const [, script, folder] = process.argv
if (script?.endsWith("effect-modules.js")) {
  if (!folder) throw new Error("name the folder of the compiled files")
  for (const name of readdirSync(folder, { recursive: true, encoding: "utf8" })) {
    if (!name.endsWith(".js")) continue
    const file = join(folder, name)
    const text = readFileSync(file, "utf8")
    const changed = withModules(text)
    if (changed !== text) writeFileSync(file, changed)
  }
}
