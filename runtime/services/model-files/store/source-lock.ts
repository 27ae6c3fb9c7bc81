import { randomBytes } from "node:crypto"
import { readFileSync, renameSync, rmSync, statSync, writeFileSync } from "node:fs"
import { Result, Schema } from "effect"
import { parse, stringify } from "yaml"
import type { LockedSource, SourceLock } from "../context.ts"
import { isMissing } from "../system-error.ts"

/** Beside the config file. */
export const lockFileName = "models.lock.yaml"

const maxBytes = 1_000_000
const heading = `# What model sources without a sha256 had at their first pull; later pulls insist on it.
# Keep it beside the config file, under version control. To renew: rakit models pull --update
`
const hex = (digits: number) =>
  Schema.String.check(Schema.isPattern(new RegExp(`^[0-9a-f]{${digits}}$`)))

const LockFile = Schema.Struct({
  models: Schema.Record(
    Schema.String,
    Schema.Array(
      Schema.Struct({
        url: Schema.String,
        commit: Schema.optionalKey(hex(40)),
        sha256: hex(64),
      }),
    ),
  ),
})
type Models = (typeof LockFile.Type)["models"]
const decode = Schema.decodeUnknownResult(LockFile, { onExcessProperty: "error" })

const parsed = (text: string): unknown => {
  try {
    return parse(text)
  } catch {
    return undefined
  }
}

const readModels = (file: string): Models => {
  let text: string
  try {
    if (statSync(file).size > maxBytes) throw new Error(`${file} is larger than ${maxBytes} bytes`)
    text = readFileSync(file, "utf8")
  } catch (error) {
    if (isMissing(error)) return {}
    throw error
  }
  const decoded = decode(parsed(text))
  if (Result.isSuccess(decoded)) return decoded.success.models
  throw new Error(
    `${file}: this is no lock file. Fix: correct it, or remove it: the next pull of each model writes it anew.`,
  )
}

const withSource = (models: Models, model: string, source: Models[string][number]): Models => {
  const isSame = ({ url }: { readonly url: string }) => url === source.url
  const replaced = Object.fromEntries(
    Object.entries(models).map(([id, all]) => [id, all.map((one) => (isSame(one) ? source : one))]),
  )
  const own = replaced[model] ?? []
  return own.some(isSame) ? replaced : { ...replaced, [model]: [...own, source] }
}

/** Reads the lock file; a missing one is empty. Throws when there is something else. */
export const openSourceLock = (file: string): SourceLock => {
  let models = readModels(file)
  return {
    file,
    find: (url) =>
      Object.values(models)
        .flat()
        .find((one) => one.url === url),
    keep: (model, { url, commit, sha256 }: LockedSource) => {
      // another process may have added to it
      models = withSource(readModels(file), model, {
        url,
        ...(commit !== undefined && { commit }),
        sha256,
      })
      // containers that share the folder may have the same pid
      const next = `${file}.${randomBytes(6).toString("hex")}.new`
      const text = heading + stringify({ models }, { aliasDuplicateObjects: false })
      try {
        // the rename must not reach the disk before the text: an empty lock file refuses the start
        writeFileSync(next, text, { flush: true })
        renameSync(next, file)
      } catch (error) {
        rmSync(next, { force: true })
        throw error
      }
    },
  }
}
