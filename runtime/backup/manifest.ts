import { createHash } from "node:crypto"
import { readFileSync } from "node:fs"
import { rename, writeFile } from "node:fs/promises"
import { join } from "node:path"
import { Schema } from "effect"

/** The layout of a backup's folder. A version of rakit reads its own and older ones. */
export const format = 1

/** A file of the backup: its path in the folder, its size, and its SHA-256 in hex. */
const WrittenFile = Schema.Struct({
  file: Schema.String,
  bytes: Schema.Number,
  sha256: Schema.String,
})
export type WrittenFile = typeof WrittenFile.Type

/** `definition`: statements that make the table, for one that no migration of a plugin makes. */
const Table = Schema.Struct({
  ...WrittenFile.fields,
  name: Schema.String,
  columns: Schema.Array(Schema.String),
  rows: Schema.Number,
  definition: Schema.Array(Schema.String),
})
export type BackedUpTable = typeof Table.Type

const Sequence = Schema.Struct({
  name: Schema.String,
  /** A bigint. */
  value: Schema.String,
  isCalled: Schema.Boolean,
})

export const Manifest = Schema.Struct({
  object: Schema.Literal("rakit.backup"),
  format: Schema.Number,
  /** The version of rakit that wrote it. */
  rakit: Schema.String,
  createdAt: Schema.String,
  deployment: Schema.String,
  /** Absent where the deployment has no database. */
  database: Schema.optional(
    Schema.Struct({
      /** Names of the migrations that ran, by plugin. */
      migrations: Schema.Record(Schema.String, Schema.Array(Schema.String)),
      extensions: Schema.Array(Schema.String),
      tables: Schema.Array(Table),
      sequences: Schema.Array(Sequence),
    }),
  ),
  /** Absent where the deployment has no storage. The file names key and digest of each blob. */
  blobs: Schema.optional(
    Schema.Struct({ ...WrittenFile.fields, count: Schema.Number, size: Schema.Number }),
  ),
  /** Absent where no plugin encrypts anything. */
  secret: Schema.optional(Schema.Struct({ ...WrittenFile.fields, keyId: Schema.String })),
})
export type Manifest = typeof Manifest.Type

export const manifestFile = "manifest.json"
/** As `sha256sum -c` reads it. */
const digestFile = `${manifestFile}.sha256`

const digestLine = (text: string): string =>
  `${createHash("sha256").update(text).digest("hex")}  ${manifestFile}\n`

/** The manifest comes last and at once: a folder without one is no backup. Rejects with an Error. */
export const writeManifest = async (folder: string, manifest: Manifest): Promise<void> => {
  const text = `${JSON.stringify(manifest, undefined, 1)}\n`
  const owned = { mode: 0o600, flush: true }
  await writeFile(join(folder, digestFile), digestLine(text), owned)
  const draft = join(folder, `${manifestFile}.draft`)
  await writeFile(draft, text, owned)
  await rename(draft, join(folder, manifestFile))
}

const textOf = (folder: string, file: string): string | undefined => {
  try {
    return readFileSync(join(folder, file), "utf8")
  } catch {
    return undefined
  }
}

const decode = (text: string): Manifest | undefined => {
  try {
    return Schema.decodeUnknownSync(Manifest)(JSON.parse(text))
  } catch {
    return undefined
  }
}

const versionIn = (text: string): Partial<Pick<Manifest, "format" | "rakit">> => {
  try {
    return JSON.parse(text) as Partial<Manifest>
  } catch {
    return {}
  }
}

/** Throws an Error for people where the folder is no backup, was changed, or is of a newer rakit. */
export const readManifest = (folder: string): Manifest => {
  const text = textOf(folder, manifestFile)
  if (text === undefined)
    throw new Error(
      `${folder} is no finished backup: it has no ${manifestFile}. Fix: name the folder that \`rakit backup\` wrote to its end.`,
    )
  const damaged = (what: string) =>
    new Error(`The backup is damaged: ${what}. Nothing was restored. Fix: take another backup.`)
  const digest = textOf(folder, digestFile)
  if (digest !== undefined && digest !== digestLine(text))
    throw damaged(`${manifestFile} or ${digestFile} was changed after it was written`)
  const { format: written, rakit } = versionIn(text)
  if (typeof written === "number" && written > format)
    throw new Error(
      `${folder} was written by a newer rakit (${rakit}, format ${written}; this one reads ${format}). Fix: restore with that version.`,
    )
  if (digest === undefined) throw damaged(`${digestFile} is missing`)
  const manifest = decode(text)
  if (manifest === undefined) throw damaged(`${manifestFile} can't be read`)
  return manifest
}
