import { readFileSync } from "node:fs"
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

const textOf = (folder: string): string => {
  try {
    return readFileSync(join(folder, manifestFile), "utf8")
  } catch {
    throw new Error(
      `${folder} is no finished backup: it has no ${manifestFile}. Fix: name the folder that \`rakit backup\` wrote to its end.`,
    )
  }
}

/** Throws an Error for people where the folder is no backup, or is of a newer rakit. */
export const readManifest = (folder: string): Manifest => {
  const text = textOf(folder)
  try {
    const read = JSON.parse(text) as Partial<Manifest>
    if (typeof read.format === "number" && read.format > format)
      throw new Error(
        `${folder} was written by a newer rakit (${read.rakit}, format ${read.format}; this one reads ${format}). Fix: restore with that version.`,
      )
    return Schema.decodeUnknownSync(Manifest)(read)
  } catch (error) {
    if (error instanceof Error && error.message.includes("newer rakit")) throw error
    throw new Error(`${join(folder, manifestFile)} is damaged. Fix: take another backup.`, {
      cause: error,
    })
  }
}
