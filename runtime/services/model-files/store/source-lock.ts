import { randomBytes } from "node:crypto"
import { readFileSync, renameSync, rmSync, statSync, writeFileSync } from "node:fs"
import { Result, Schema } from "effect"
import { parse, stringify } from "yaml"
import { systemClock } from "../../../../core/services/clock.ts"
import type { ModelId } from "../../../../core/services/ids.ts"
import { defaultTiming, type LockedSource, type SourceLock } from "../context.ts"
import { isMissing } from "../system-error.ts"
import { acquireLock } from "./lock.ts"

/** Beside the config file. */
export const lockFileName = "models.lock.yaml"

const maxBytes = 1_000_000
const heading = `# What model sources without a sha256 had at their first pull; later pulls insist on it.
# Keep it beside the config file, under version control. To renew: rakit models pull --update
`
const hex = (digits: number) =>
  Schema.String.check(
    Schema.isPattern(new RegExp(`^[0-9a-f]{${digits}}$`), {
      message: `expected ${digits} hexadecimal digits in lower case`,
    }),
  )

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

const isSame = (one: LockedSource, { url, commit, sha256 }: LockedSource): boolean =>
  one.url === url && one.commit === commit && one.sha256 === sha256

const messageOf = (error: unknown): string =>
  error instanceof Error ? error.message : String(error)

/** The URL of a source that two entries pin to something else each, as a merge of branches may. */
const pinnedTwice = (models: Models): string | undefined => {
  const known = new Map<string, LockedSource>()
  for (const one of Object.values(models).flat()) {
    if (!isSame(known.get(one.url) ?? one, one)) return one.url
    known.set(one.url, one)
  }
  return undefined
}

/** Returns what a lock file has, or what is wrong with it. */
const modelsIn = (text: string): Models | string => {
  const conflict = text.split("\n").findIndex((line) => /^(<{7}|>{7}) /.test(line))
  if (conflict >= 0) return `line ${conflict + 1} is a conflict that git left`
  let value: unknown
  try {
    value = parse(text)
  } catch (error) {
    return messageOf(error).split("\n")[0]?.replace(/:$/, "") ?? ""
  }
  const decoded = decode(value)
  if (Result.isFailure(decoded)) return decoded.failure.message.replace(/\s*\n\s*/g, " ")
  const { models } = decoded.success
  const url = pinnedTwice(models)
  return url === undefined ? models : `two entries pin ${url}, each to something else`
}

const readModels = (file: string): Models => {
  let text: string
  try {
    if (statSync(file).size > maxBytes) throw new Error(`it is larger than ${maxBytes} bytes`)
    text = readFileSync(file, "utf8")
  } catch (error) {
    if (isMissing(error)) return {}
    throw new Error(`${file}: the lock file can't be read (${messageOf(error)})`)
  }
  const models = modelsIn(text)
  if (typeof models !== "string") return models
  throw new Error(
    `${file}: this is no lock file (${models}). Fix: correct it, or remove it: the next pull of each model writes it anew.`,
  )
}

const withSource = (models: Models, model: string, source: Models[string][number]): Models => {
  const hasUrl = ({ url }: { readonly url: string }) => url === source.url
  const replaced = Object.fromEntries(
    Object.entries(models).map(([id, all]) => [id, all.map((one) => (hasUrl(one) ? source : one))]),
  )
  const own = replaced[model] ?? []
  return own.some(hasUrl) ? replaced : { ...replaced, [model]: [...own, source] }
}

const writeModels = (file: string, models: Models): void => {
  // containers that share the folder may have the same pid
  const next = `${file}.${randomBytes(6).toString("hex")}.new`
  // sorted: two pulls of the same end in any order, and the file is under version control
  const sorted = Object.keys(models)
    .sort()
    .map((id) => [id, [...models[id]!].sort((a, b) => (a.url < b.url ? -1 : 1))])
  const text =
    heading + stringify({ models: Object.fromEntries(sorted) }, { aliasDuplicateObjects: false })
  try {
    // the rename must not reach the disk before the text: an empty lock file refuses the start
    writeFileSync(next, text, { flush: true })
    renameSync(next, file)
  } catch (error) {
    rmSync(next, { force: true })
    throw error
  }
}

/** A rename asks the folder alone whether the file may be replaced. */
const refuseReadOnly = (file: string): void => {
  const found = statSync(file, { throwIfNoEntry: false })
  if (found !== undefined && (found.mode & 0o222) === 0) throw new Error(`${file} is read-only`)
}

const findIn = (models: Models, url: string): LockedSource | undefined =>
  Object.values(models)
    .flat()
    .find((one) => one.url === url)

/** Reads the lock file; a missing one is empty. Throws when there is something else. */
export const openSourceLock = (file: string, timing = defaultTiming): SourceLock => {
  let models = readModels(file)
  const write = (model: ModelId, { url, commit, sha256 }: LockedSource) => {
    models = withSource(models, model, { url, ...(commit !== undefined && { commit }), sha256 })
    writeModels(file, models)
  }
  /** Processes that pull at the same time change the file in turn, or one's entry would be lost. */
  const change = async <A>(work: () => A): Promise<A> => {
    refuseReadOnly(file)
    const context = { clock: systemClock, timing }
    const turn = await acquireLock({ context, path: `${file}.lock` })
    try {
      models = readModels(file)
      return work()
    } finally {
      await turn.release()
    }
  }
  return {
    file,
    find: (url) => findIn(models, url),
    add: async (model, source) => {
      // what is there needs no right to write
      models = readModels(file)
      const known = () => findIn(models, source.url)
      const added = () => {
        write(model, source)
        return source
      }
      return known() ?? change(() => known() ?? added())
    },
    keep: async (model, source) => {
      models = readModels(file)
      if (models[model]?.some((one) => isSame(one, source))) return
      await change(() => write(model, source))
    },
  }
}
