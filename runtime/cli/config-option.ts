import { existsSync } from "node:fs"
import { fileURLToPath } from "node:url"
import { type Command, InvalidArgumentError } from "commander"

/** What `rakit init` writes. */
export const ownConfig = "rakit.yaml"

/** The starter deployment; this file runs from the sources or from `dist/`. */
const starter = fileURLToPath(
  new URL(
    import.meta.url.includes("/dist/")
      ? "../../../config/starter.yaml"
      : "../../config/starter.yaml",
    import.meta.url,
  ),
)

/** The config file of a command that names none: one's own where it is here, else the starter. */
export const defaultConfig = existsSync(ownConfig) ? ownConfig : starter

/** `-c` or a plain argument names the config file. */
export const withConfig = (command: Command) =>
  command
    .argument("[config]", "config file of the deployment", defaultConfig)
    .option("-c, --config <file>", "the same, as an option")

export const withJson = (command: Command, what = "print the result as JSON") =>
  command.option("--json", what, false)

/** Reads an option that is a whole number of this range. */
export const wholeNumber = (from: number, to: number) => (text: string) => {
  const value = /^\d{1,9}$/.test(text) ? Number(text) : Number.NaN
  if (value >= from && value <= to) return value
  throw new InvalidArgumentError(`Expected a whole number from ${from} to ${to}.`)
}
