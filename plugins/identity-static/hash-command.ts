import { createHash } from "node:crypto"
import { text } from "node:stream/consumers"
import { type RunCommand, randomText } from "../../core/index.ts"

/** The rule for the operator's own keys elsewhere, too. */
const usable = /^[\x21-\x7e]{16,200}$/

const readKey = async (): Promise<string> => {
  const key = (await text(process.stdin)).trim()
  if (!usable.test(key))
    throw new Error(
      "The key on the standard input can't be used: it must be 16 to 200 visible ASCII characters, without spaces.",
    )
  return key
}

export const hashCommand: RunCommand = async ({ options }) => {
  const isGiven = options.stdin === true
  const isTest = options.test === true
  const key = isGiven ? await readKey() : `svc_${isTest ? "test" : "live"}_${randomText(32)}`
  const hash = `sha256:${createHash("sha256").update(key).digest("hex")}`
  const name = String(options.name ?? "app")
  const entry = { name, hash, ...(isTest && { test: true }) }
  if (options.json === true)
    return void process.stdout.write(
      `${JSON.stringify({ ...entry, ...(!isGiven && { key }) }, null, 2)}\n`,
    )
  const shown = isGiven ? "" : `The key, shown this once:\n  ${key}\n\n`
  const line = `{ name: ${JSON.stringify(name)}, hash: "${hash}"${isTest ? ", test: true" : ""} }`
  process.stdout.write(
    `${shown}For the config file:\n  plugins:\n    identity-static:\n      keys:\n        - ${line}\n`,
  )
}
