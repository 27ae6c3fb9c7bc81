import { Result } from "effect"
import type { ModelSource } from "../../../../core/index.ts"
import type { LockedSource, PullContext } from "../context.ts"
import { SourceFailed, shownUrl } from "../failure.ts"
import { type Artifact, artifactOf } from "./artifact.ts"
import type { LocalSource } from "./local.ts"
import { formatSourceUrl, parseSourceUrl } from "./source-url.ts"

/** A parsed source of the config. `shown` is safe to log. */
export type ParsedSource = { readonly source: ModelSource; readonly shown: string } & (
  | { readonly local: LocalSource }
  | { readonly artifact: Artifact }
)

/** Fails with `SourceFailed`. */
export const parseSource = (source: ModelSource): ParsedSource => {
  const parsed = parseSourceUrl(source.url)
  if (Result.isFailure(parsed)) throw new SourceFailed(parsed.failure)
  const sha256 = source.sha256?.toLowerCase()
  if (sha256 !== undefined && !/^[0-9a-f]{64}$/.test(sha256))
    throw new SourceFailed("its sha256 must be 64 hex digits")
  const shown = shownUrl(source.url)
  const url = parsed.success
  return url.scheme === "file"
    ? { source, shown, local: { path: url.path, sha256 } }
    : { source, shown, artifact: artifactOf(url, sha256) }
}

/**
 * True for a source whose digest belongs into the lock file: it has none of its own, and its URL
 * holds no secret (credentials, a signed query).
 */
export const isLockable = ({ url, sha256 }: ModelSource): boolean =>
  sha256 === undefined && !url.startsWith("file:") && !holdsSecret(url)

/** Whether a URL has credentials or a query, as signed addresses do. */
export const holdsSecret = (url: string): boolean => shownUrl(url) !== url

export const findLocked = (
  { lock, isRenewal }: Pick<PullContext, "lock" | "isRenewal">,
  source: ModelSource,
): LockedSource | undefined =>
  isLockable(source) && !isRenewal ? lock?.find(source.url) : undefined

/** The source as the lock file pins it: its digest, and of a hub the commit. */
export const asLocked = (context: PullContext, source: ModelSource): ModelSource => {
  const locked = findLocked(context, source)
  if (locked === undefined) return source
  const { url, commit, sha256 } = locked
  const parsed = parseSourceUrl(url)
  if (commit === undefined || Result.isFailure(parsed) || parsed.success.scheme !== "hf")
    return { url, sha256 }
  return { url: formatSourceUrl({ ...parsed.success, revision: commit }), sha256 }
}

/** Leaves out sources that can't be parsed. */
export const parseAll = (
  context: PullContext,
  sources: readonly ModelSource[],
): readonly ParsedSource[] =>
  sources.flatMap((source) => {
    try {
      return [parseSource(asLocked(context, source))]
    } catch {
      return []
    }
  })
