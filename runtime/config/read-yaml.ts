import { readFileSync } from "node:fs"
import { relative } from "node:path"
import { LineCounter, parseDocument } from "yaml"
import { ConfigError, type Locator } from "./problems.ts"

const maxConfigBytes = 1_000_000

const shownPath = (file: string): string => {
  const near = relative(process.cwd(), file)
  return near.startsWith("..") ? file : near
}

const nameOne = "name a config file, as in: rakit serve config/starter.yaml; rakit init writes one"

const read = (file: string, fix: string): string => {
  try {
    const text = readFileSync(file, "utf8")
    if (text.length > maxConfigBytes) throw new Error(`it is larger than ${maxConfigBytes} bytes`)
    return text
  } catch (cause) {
    const reason =
      (cause as NodeJS.ErrnoException).code === "ENOENT"
        ? "there is no such file"
        : (cause as Error).message
    throw new ConfigError([`${shownPath(file)}: can't be read: ${reason}.\n    Fix: ${fix}`])
  }
}

/**
 * Reads a YAML file; throws a ConfigError for one that can't be read, with this fix, or parsed.
 */
export const readYaml = (file: string, fix = nameOne): Locator => {
  const lines = new LineCounter()
  const document = parseDocument(read(file, fix), { lineCounter: lines, uniqueKeys: true })
  const where = { file: shownPath(file), document, lines }
  if (document.errors.length > 0)
    throw new ConfigError(
      document.errors.map(
        (error) =>
          `${where.file}:${error.linePos?.[0].line ?? 1}:${error.linePos?.[0].col ?? 1} ${error.message.split("\n")[0]}\n    Fix: correct the YAML (inside { } or [ ], write "\${NAME}" in quotes).`,
      ),
    )
  return where
}
