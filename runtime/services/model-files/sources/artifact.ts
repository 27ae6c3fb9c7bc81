import { createHash } from "node:crypto"
import { shownUrl } from "../failure.ts"
import { formatSourceUrl, type SourceUrl } from "./source-url.ts"

/** How what a source publishes lies on disk: an unpacked archive, one file, or the files below a folder of a hub. */
export type ContentKind = "archive" | "file" | "tree"

export type RemoteSource = Exclude<SourceUrl, { scheme: "file" }>

/** One thing to download and keep. Entries that take different files out of one archive want the same thing. */
export interface Wanted {
  readonly source: RemoteSource
  /** Fit for people and logs; for an archive without the path inside. */
  readonly name: string
  readonly kind: ContentKind
  readonly sha256: string | undefined
  /** Where its lock, part and note lie: 16 hex digits, of the digest when that is pinned, else of the name. */
  readonly key: string
  /** Where a note keeps the digest of content without a pin. */
  readonly nameKey: string
  /** Begins the names of folders. */
  readonly label: string
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
