import { createHash } from "node:crypto"
import type { RemoteFile } from "../download/download.ts"
import { shownUrl } from "../failure.ts"
import { type ContentKind, contentPath, type Manifest } from "../store/manifest.ts"
import type { ContentKey, Stored } from "../store/store.ts"
import { formatSourceUrl, type SourceUrl } from "./source-url.ts"

export type RemoteSource = Exclude<SourceUrl, { scheme: "file" }>

export interface Place {
  /** A file or a folder. */
  readonly path: string
  readonly bytes: number
}

/** One thing to download and keep. Entries that take different files out of one archive want the same thing. */
export interface Wanted extends ContentKey {
  readonly source: RemoteSource
  /** Names its lock and its part: 16 hex digits, of the digest when that is pinned, else of the name. */
  readonly key: string
  /** Begins the names of folders. */
  readonly label: string
}

/** Where exactly a source's bytes are, once its index was asked. */
export interface Origin {
  /** `plain`: the files are kept as they come. */
  readonly form: "zip" | "tgz" | "plain"
  readonly files: readonly RemoteFile[]
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

/** `url` is part of the key of an unpinned web file, query and all. */
const identityOf = (source: RemoteSource): string =>
  source.scheme === "web" ? source.url : nameOf(source)

export const makeWanted = (source: RemoteSource, pinned: string | undefined): Wanted => {
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

/** The file or folder that this source names in what is stored; undefined when there is none. */
export const placeOf = (
  { folder, manifest }: Stored,
  { source, kind }: Wanted,
): Place | undefined => {
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
