import { randomUUID } from "node:crypto"
import { readdir, readFile, rename, rm } from "node:fs/promises"
import { join } from "node:path"
import { Result, Schema } from "effect"
import { makeFolders } from "../../../../core/folders.ts"
import { syncFolder, writeWhole } from "./disk.ts"
import {
  type ContentKind,
  contentPath,
  type Manifest,
  readManifest,
  sizesAreRight,
  writeManifest,
} from "./manifest.ts"

/*
 * modelsDir/
 *   <label>-<first 16 digits of the digest>/   complete content: files/..., manifest.json
 *   .notes/<key of the name>.json              pins: the digest that an unpinned source turned out to have
 *   .downloads/                                locks, parts, incomplete folders
 *   .file-digests/                             digests of local files that `file:` names
 */

/** By what the store finds content. */
export interface ContentKey {
  /** Safe to show and to log; for an archive without the path inside. */
  readonly name: string
  readonly kind: ContentKind
  /** Hex; undefined without a pin. */
  readonly sha256: string | undefined
  /** Names the file of the pin where the config gives no digest. */
  readonly nameKey: string
}

export interface Stored {
  readonly folder: string
  readonly manifest: Manifest
}

export const downloadsDir = (modelsDir: string): string => join(modelsDir, ".downloads")
export const fileDigestsDir = (modelsDir: string): string => join(modelsDir, ".file-digests")
const pinPath = (modelsDir: string, { nameKey }: ContentKey): string =>
  join(modelsDir, ".notes", `${nameKey}.json`)

const decodePin = Schema.decodeUnknownResult(
  Schema.fromJsonString(
    Schema.Struct({
      source: Schema.String,
      sha256: Schema.String,
      commit: Schema.optionalKey(Schema.String),
    }),
  ),
)

/** What an unpinned source turned out to have. */
export interface Pin {
  readonly sha256: string
  readonly commit?: string
}

export const readPin = async (
  modelsDir: string,
  artifact: ContentKey,
): Promise<Pin | undefined> => {
  const pin = decodePin(await readFile(pinPath(modelsDir, artifact), "utf8").catch(() => ""))
  return Result.isSuccess(pin) ? pin.success : undefined
}

const digestOf = async (modelsDir: string, artifact: ContentKey): Promise<string | undefined> =>
  artifact.sha256 ?? (await readPin(modelsDir, artifact))?.sha256

/** Finds content by its manifest, without checking the files. */
export const findManifest = async (
  modelsDir: string,
  artifact: ContentKey,
): Promise<Stored | undefined> => {
  const sha256 = await digestOf(modelsDir, artifact)
  if (sha256 === undefined) return undefined
  const names = await readdir(modelsDir).catch(() => [])
  for (const name of names.filter((name) => name.endsWith(`-${sha256.slice(0, 16)}`))) {
    const folder = join(modelsDir, name)
    const manifest = await readManifest(folder)
    if (manifest?.sha256 === sha256 && manifest.kind === artifact.kind) return { folder, manifest }
  }
  return undefined
}

/** Finds content whose files have the right sizes. */
export const findStored = async (
  modelsDir: string,
  artifact: ContentKey,
): Promise<Stored | undefined> => {
  const stored = await findManifest(modelsDir, artifact)
  return stored && (await sizesAreRight(stored.folder, stored.manifest)) ? stored : undefined
}

export const writePin = async (
  modelsDir: string,
  artifact: ContentKey,
  pin: Pin,
): Promise<void> => {
  makeFolders(join(modelsDir, ".notes"))
  await writeWhole(pinPath(modelsDir, artifact), JSON.stringify({ source: artifact.name, ...pin }))
}

/**
 * Publishes a finished folder so that a crash leaves it absent or complete: syncs the files, then
 * manifest, folder and name.
 */
export const publish = async (
  modelsDir: string,
  building: string,
  label: string,
  manifest: Manifest,
): Promise<Stored> => {
  await syncFolder(contentPath(building))
  await writeManifest(building, manifest)
  await syncFolder(building)
  const folder = join(modelsDir, `${label}-${manifest.sha256.slice(0, 16)}`)
  // an existing folder is damaged, or it would have been used; a reader that has it open keeps its
  // files
  const old = join(downloadsDir(modelsDir), `old-${randomUUID()}`)
  await rename(folder, old).catch(() => {})
  await rename(building, folder)
  await syncFolder(modelsDir)
  await rm(old, { recursive: true, force: true })
  return { folder, manifest }
}
