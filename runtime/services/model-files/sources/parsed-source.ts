import { Result } from "effect"
import type { ModelSource } from "../../../../core/index.ts"
import { SourceFailed, shownUrl } from "../failure.ts"
import { type Artifact, artifactOf } from "./artifact.ts"
import type { LocalSource } from "./local.ts"
import { parseSourceUrl } from "./source-url.ts"

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

/** Leaves out sources that can't be parsed. */
export const parseAll = (sources: readonly ModelSource[]): readonly ParsedSource[] =>
  sources.flatMap((source) => {
    try {
      return [parseSource(source)]
    } catch {
      return []
    }
  })
