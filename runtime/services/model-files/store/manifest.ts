import { readFile, rm, stat } from "node:fs/promises"
import { join } from "node:path"
import { Result, Schema } from "effect"
import { isSafePath } from "../safe-path.ts"
import { sha256OfFile } from "./digest.ts"
import { writeWhole } from "./disk.ts"

const Sha256 = Schema.String.check(Schema.makeFilter((text: string) => /^[0-9a-f]{64}$/.test(text)))
const ManifestSchema = Schema.Struct({
  format: Schema.Literal(1),
  /** The artifact's name. */
  source: Schema.String,
  kind: Schema.Literals(["archive", "file", "tree"]),
  /** Digest of what was published: the archive, the file, or the listing of the tree. */
  sha256: Sha256,
  files: Schema.Array(
    Schema.Struct({
      path: Schema.String.check(Schema.makeFilter(isSafePath)),
      bytes: Schema.Finite,
      sha256: Sha256,
    }),
  ),
})

/**
 * Describes a complete folder of the cache. It is written last: a folder without it is incomplete.
 */
export type Manifest = typeof ManifestSchema.Type
/** How content is stored: an unpacked archive, one file, or the files below a folder of a hub. */
export type ContentKind = Manifest["kind"]
export type ManifestFile = Manifest["files"][number]

const decodeManifest = Schema.decodeUnknownResult(Schema.fromJsonString(ManifestSchema))

const manifestPath = (folder: string): string => join(folder, "manifest.json")

/** The path of a file, in a subfolder so that none of them can be mistaken for the manifest. */
export const contentPath = (folder: string, path = ""): string => join(folder, "files", path)

export const readManifest = async (folder: string): Promise<Manifest | undefined> => {
  const decoded = decodeManifest(await readFile(manifestPath(folder), "utf8").catch(() => ""))
  return Result.isSuccess(decoded) ? decoded.success : undefined
}

export const writeManifest = (folder: string, manifest: Manifest): Promise<void> =>
  writeWhole(manifestPath(folder), `${JSON.stringify(manifest, undefined, 2)}\n`)

/** Marks the folder as incomplete, so that the next pull fetches it again. */
export const removeManifest = (folder: string): Promise<void> =>
  rm(manifestPath(folder), { force: true })

const sizeProblem = async (
  folder: string,
  { path, bytes }: ManifestFile,
): Promise<string | undefined> => {
  const found = await stat(contentPath(folder, path)).catch(() => undefined)
  if (!found?.isFile()) return `${path} is missing`
  return found.size === bytes ? undefined : `${path} has ${found.size} bytes, should have ${bytes}`
}

/** Checks that all files exist with the right sizes. */
export const sizesAreRight = async (folder: string, manifest: Manifest): Promise<boolean> => {
  for (const file of manifest.files)
    if ((await sizeProblem(folder, file)) !== undefined) return false
  return true
}

/** Hashes every file again, and returns a sentence for each that is missing or wrong. */
export const findDamage = async (
  folder: string,
  manifest: Manifest,
  signal: AbortSignal,
): Promise<readonly string[]> => {
  const problems: string[] = []
  for (const file of manifest.files) {
    const size = await sizeProblem(folder, file)
    const sha256 =
      size === undefined ? await sha256OfFile(contentPath(folder, file.path), signal) : file.sha256
    if (size !== undefined) problems.push(size)
    else if (sha256 !== file.sha256)
      problems.push(`${file.path} has sha256 ${sha256}, should have ${file.sha256}`)
  }
  return problems
}
