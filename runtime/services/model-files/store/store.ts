import { randomUUID } from "node:crypto"
import { mkdir, readdir, readFile, rename, rm } from "node:fs/promises"
import { join } from "node:path"
import { Result, Schema } from "effect"
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
 *   .notes/<key of the name>.json              which digest an unpinned source turned out to have
 *   .downloads/                                locks, parts, folders in the making
 *   .file-digests/                             digests of local files that `file:` names
 */

/** What the store needs to know of content to find it. */
export interface ContentKey {
  /** Fit for people and logs; for an archive without the path inside. */
  readonly name: string
  readonly kind: ContentKind
  /** Hex; undefined without a pin. */
  readonly sha256: string | undefined
  /** Names the pin of content whose digest the config does not give. */
  readonly nameKey: string
}

export interface Stored {
  readonly folder: string
  readonly manifest: Manifest
}

export const downloadsDir = (modelsDir: string): string => join(modelsDir, ".downloads")
export const fileDigestsDir = (modelsDir: string): string => join(modelsDir, ".file-digests")
const notePath = (modelsDir: string, { nameKey }: ContentKey): string =>
  join(modelsDir, ".notes", `${nameKey}.json`)

const decodeNote = Schema.decodeUnknownResult(
  Schema.fromJsonString(Schema.Struct({ source: Schema.String, sha256: Schema.String })),
)

const digestOf = async (modelsDir: string, wanted: ContentKey): Promise<string | undefined> => {
  if (wanted.sha256 !== undefined) return wanted.sha256
  const note = decodeNote(await readFile(notePath(modelsDir, wanted), "utf8").catch(() => ""))
  return Result.isSuccess(note) ? note.success.sha256 : undefined
}

/** Its manifest is there; the files were not looked at. */
export const findManifest = async (
  modelsDir: string,
  wanted: ContentKey,
): Promise<Stored | undefined> => {
  const sha256 = await digestOf(modelsDir, wanted)
  if (sha256 === undefined) return undefined
  const names = await readdir(modelsDir).catch(() => [])
  for (const name of names.filter((name) => name.endsWith(`-${sha256.slice(0, 16)}`))) {
    const folder = join(modelsDir, name)
    const manifest = await readManifest(folder)
    if (manifest?.sha256 === sha256 && manifest.kind === wanted.kind) return { folder, manifest }
  }
  return undefined
}

/** Complete, by the cheap check. */
export const findStored = async (
  modelsDir: string,
  wanted: ContentKey,
): Promise<Stored | undefined> => {
  const stored = await findManifest(modelsDir, wanted)
  return stored && (await sizesAreRight(stored.folder, stored.manifest)) ? stored : undefined
}

export const remember = async (
  modelsDir: string,
  wanted: ContentKey,
  sha256: string,
): Promise<void> => {
  await mkdir(join(modelsDir, ".notes"), { recursive: true })
  await writeWhole(notePath(modelsDir, wanted), JSON.stringify({ source: wanted.name, sha256 }))
}

/** Moves a folder that holds all its files into its place: files on disk, manifest, folder, then the name, in this order. */
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
  // what is there is damaged, or this would not run; a reader that has it open keeps its files
  const old = join(downloadsDir(modelsDir), `old-${randomUUID()}`)
  await rename(folder, old).catch(() => {})
  await rename(building, folder)
  await syncFolder(modelsDir)
  await rm(old, { recursive: true, force: true })
  return { folder, manifest }
}
