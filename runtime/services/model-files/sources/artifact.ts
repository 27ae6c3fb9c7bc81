import { createHash } from "node:crypto"
import type { RemoteFile } from "../download/download.ts"
import { shownUrl } from "../failure.ts"
import { type ContentKind, contentPath, type Manifest } from "../store/manifest.ts"
import type { ContentKey, Stored } from "../store/store.ts"
import { formatSourceUrl, type SourceUrl } from "./source-url.ts"

export type RemoteSource = Exclude<SourceUrl, { scheme: "file" }>

export interface StoredPath {
  /** A file or a folder. */
  readonly path: string
  readonly bytes: number
}

/**
 * What is downloaded and kept as a whole. Entries that use different files of one archive share an
 * artifact.
 */
export interface Artifact extends ContentKey {
  readonly source: RemoteSource
  /**
   * Names its lock and its part: 16 hex digits of the digest if that is pinned, else of the name's
   * hash.
   */
  readonly key: string
  /** The readable prefix of its folder's name. */
  readonly label: string
}

/** The files that a source stands for, after its index was queried. */
export interface ResolvedSource {
  /** `plain`: the files are kept as they are. */
  readonly form: "zip" | "tgz" | "plain"
  readonly files: readonly RemoteFile[]
  /** The commit of a hub's repository, where the hub says it. */
  readonly commit?: string | undefined
}

const nameOf = (source: RemoteSource): string => {
  if (source.scheme === "pypi")
    return `pypi:${source.name.toLowerCase().replace(/[-_.]+/g, "-")}==${source.version}`
  if (source.scheme === "npm") return `npm:${source.name}@${source.version}`
  return source.scheme === "web" ? shownUrl(source.url) : formatSourceUrl(source)
}

const kindOf = (source: RemoteSource): ContentKind => {
  if (source.scheme === "web") return "file"
  if (source.scheme === "hf") return source.folder ? "tree" : "file"
  return "archive"
}

const labelOf = (source: RemoteSource): string => {
  const text =
    source.scheme === "hf"
      ? `${source.repo}-${source.path}`
      : source.scheme === "web"
        ? (new URL(source.url).pathname.split("/").at(-1) ?? "")
        : `${source.name}-${source.version}`
  const label = text.replace(/[^A-Za-z0-9._]+/g, "-").replace(/^[-.]+|-+$/g, "")
  return label.slice(-80).replace(/^[-.]+/, "") || "model"
}

const hash = (text: string): string => createHash("sha256").update(text).digest("hex")

/** What the key of an unpinned source is made of; of a web file the whole URL, with its query. */
const identityOf = (source: RemoteSource): string =>
  source.scheme === "web" ? source.url : nameOf(source)

export const artifactOf = (source: RemoteSource, pinned: string | undefined): Artifact => {
  const sha256 = pinned?.toLowerCase()
  const nameKey = hash(identityOf(source)).slice(0, 16)
  return {
    source,
    name: nameOf(source),
    kind: kindOf(source),
    sha256,
    key: sha256?.slice(0, 16) ?? nameKey,
    nameKey,
    label: labelOf(source),
  }
}

/**
 * Returns the file or folder that the source names in stored content; undefined if there is none.
 */
export const findPath = (
  { folder, manifest }: Stored,
  { source, kind }: Artifact,
): StoredPath | undefined => {
  const sum = (files: Manifest["files"]) => files.reduce((bytes, file) => bytes + file.bytes, 0)
  if (kind === "file" || source.scheme === "web") {
    const [only] = manifest.files
    return only && { path: contentPath(folder, only.path), bytes: only.bytes }
  }
  const files = source.folder
    ? manifest.files.filter(({ path }) => source.path === "" || path.startsWith(`${source.path}/`))
    : manifest.files.filter(({ path }) => path === source.path)
  return files.length === 0
    ? undefined
    : { path: contentPath(folder, source.path), bytes: sum(files) }
}
