import { readFileSync } from "node:fs"
import { fileURLToPath } from "node:url"
import { Command } from "commander"
import { addCheck } from "./cli/check.ts"
import { addKeys } from "./cli/keys.ts"
import { addMigrate } from "./cli/migrate.ts"
import { addModels } from "./cli/models.ts"
import { addServe } from "./cli/serve.ts"

/** package.json is one level up from the sources, two from `dist/`. */
const packageVersion = (): string => {
  for (const up of ["..", "../.."]) {
    try {
      const found = JSON.parse(readFileSync(fileURLToPath(new URL(`${up}/package.json`, import.meta.url)), "utf8")) as { version?: string }
      if (found.version) return found.version
    } catch {}
  }
  return "0.0.0"
}

export const version = packageVersion()

export const makeCli = (): Command => {
  const program = new Command("rakit")
    .description("Assembles an inference server from one config file.")
    .version(version)
    .showHelpAfterError("(rakit --help shows the commands)")
    .configureHelp({ showGlobalOptions: true })
  for (const add of [addServe, addCheck, addModels, addKeys, addMigrate]) add(program)
  return program
}

export const main = async (argv: readonly string[]): Promise<void> => {
  await makeCli().parseAsync(argv)
}
