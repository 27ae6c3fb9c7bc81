import { Command } from "commander"
import { addCheck } from "./cli/check.ts"
import { addKeys } from "./cli/keys.ts"
import { addMigrate } from "./cli/migrate.ts"
import { addModels } from "./cli/models.ts"
import { addServe } from "./cli/serve.ts"
import { version } from "./version.ts"

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
