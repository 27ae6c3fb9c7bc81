import { Data } from "effect"
import type { ModelId } from "../../../core/services/ids.ts"
import type { ModelSource } from "../../../core/services/model-entry.ts"
import type { PullContext, Report } from "./context.ts"
import type { makeSharedJobs } from "./download/shared-jobs.ts"
import { DamagedContent, NotThere, SourceFailed, shownUrl } from "./failure.ts"
import { fetchArtifact } from "./fetch-artifact.ts"
import { findPath, type StoredPath } from "./sources/artifact.ts"
import { useLocal } from "./sources/local.ts"
import {
  asLocked,
  findLocked,
  isLockable,
  type ParsedSource,
  parseAll,
  parseSource,
} from "./sources/parsed-source.ts"
import { findStored, readPin, type Stored } from "./store/store.ts"

export interface PullProgress {
  readonly model: ModelId
  readonly source: string
  readonly doneBytes: number
  /** Undefined until the server announces it. */
  readonly totalBytes: number | undefined
}

/** No source could be used, the message names each and why; or the lock file can't be renewed. */
export class ModelFilesMissing extends Data.TaggedError("ModelFilesMissing")<{
  readonly model: ModelId
  readonly message: string
}> {}

export interface FoundFiles extends StoredPath {
  readonly source: ModelSource
}

export interface PullDeps {
  readonly context: PullContext
  readonly share: ReturnType<typeof makeSharedJobs<Stored>>
  /** URLs of sources without a digest that were warned about. */
  readonly warned: Set<string>
}

type OnProgress = (progress: PullProgress) => void

const findOne = async (
  context: PullContext,
  parsed: ParsedSource,
  signal: AbortSignal,
): Promise<FoundFiles | undefined> => {
  try {
    const stored =
      "artifact" in parsed ? await findStored(context.modelsDir, parsed.artifact) : undefined
    const content =
      "local" in parsed
        ? await useLocal(context, parsed.local, signal)
        : stored && findPath(stored, parsed.artifact)
    return content && { ...content, source: parsed.source }
  } catch (error) {
    if (error instanceof SourceFailed) return undefined
    throw error
  }
}

export const findFirst = async (
  context: PullContext,
  sources: readonly ModelSource[],
  signal: AbortSignal,
): Promise<FoundFiles | undefined> => {
  for (const parsed of parseAll(context, sources)) {
    const found = await findOne(context, parsed, signal)
    if (found) return found
  }
  return undefined
}

/**
 * Warns once for each source without a digest, except for local files: those are the operator's
 * own.
 */
const warnUnpinned = ({ context, warned }: PullDeps, source: ModelSource): void => {
  const isPinned = source.sha256 !== undefined || source.url.startsWith("file:")
  if (isPinned || (context.lock && isLockable(source)) || warned.has(source.url)) return
  warned.add(source.url)
  context.log.warn(
    "model.source_unpinned",
    "this model source has no sha256: whatever it serves is used",
    {
      source: shownUrl(source.url),
    },
  )
}

/** A renewal whose lock file keeps what the source had before. */
class NotRenewed extends Error {}

/**
 * Writes what an unpinned source has into the lock file, once. Returns false where another pull was
 * first, at whose time the source had something else. A file that can't be written costs a warning,
 * but a renewal, which was asked for it, fails.
 */
const keepLocked = async (
  { context }: PullDeps,
  model: ModelId,
  source: ModelSource,
): Promise<boolean> => {
  const { lock, log } = context
  if (!lock || !isLockable(source) || findLocked(context, source)) return true
  const parsed = parseSource(source)
  const pin = "artifact" in parsed && (await readPin(context.modelsDir, parsed.artifact))
  if (!pin) return true
  const { sha256, commit } = pin
  const found = { url: source.url, sha256, commit }
  try {
    if (context.isRenewal) await lock.keep(model, found)
    else if ((await lock.add(model, found)).sha256 !== sha256) return false
    log.info("model.source_locked", "the lock file has what this model source is", {
      ...{ model, source: source.url, sha256, commit, file: lock.file },
    })
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error)
    log.warn("model.lock_not_written", "the lock file of model sources can't be written", {
      ...{ model, source: source.url, sha256, commit, file: lock.file, reason },
    })
    if (context.isRenewal)
      throw new NotRenewed(
        `The lock file of model ${model} is not renewed: ${reason}. What was pulled is in the cache, and not used.`,
      )
  }
  return true
}

/** A source that is pinned by the lock file, and has or is something else now. */
const reasonOf = (context: PullContext, source: ModelSource, error: unknown): string => {
  const reason = error instanceof Error ? error.message : String(error)
  const isOther = error instanceof DamagedContent || error instanceof NotThere
  return isOther && findLocked(context, source)
    ? `${reason}; ${context.lock?.file} pins it (rakit models pull --update asks the source again)`
    : reason
}

/**
 * Lets the first report, the last, and at most one per `intervalMs` through. A listener that throws
 * does not stop the pull.
 */
const throttled = (report: Report, intervalMs: number, nowMs: () => number): Report => {
  let lastMs = Number.NEGATIVE_INFINITY
  let lastBytes = -1
  return (done, total) => {
    const now = nowMs()
    const last = done === total
    if ((!last && now - lastMs < intervalMs) || (last && lastBytes === done)) return
    lastMs = now
    lastBytes = last ? done : -1
    try {
      report(done, total)
    } catch {}
  }
}

const pullOne = async (
  deps: PullDeps,
  model: ModelId,
  source: ModelSource,
  onProgress: OnProgress,
  signal: AbortSignal,
): Promise<string> => {
  const { context, share } = deps
  const parsed = parseSource(source)
  if ("local" in parsed) return (await useLocal(context, parsed.local, signal)).path
  const { artifact, shown } = parsed
  warnUnpinned(deps, source)
  const report = throttled(
    (doneBytes, totalBytes) => onProgress({ model, source: shown, doneBytes, totalBytes }),
    context.timing.reportMs,
    context.clock.nowMs,
  )
  const stored = await share(
    `${artifact.kind} ${artifact.key}`,
    (all, stop) => fetchArtifact(context, artifact, all, stop),
    report,
    signal,
  )
  const content = findPath(stored, artifact)
  if (!content)
    throw new SourceFailed(
      `there is no such path in it; it holds ${stored.manifest.files
        .slice(0, 8)
        .map(({ path }) => path)
        .join(", ")}${stored.manifest.files.length > 8 ? " ..." : ""}`,
    )
  return content.path
}

export const pull = async (
  deps: PullDeps,
  model: ModelId,
  sources: readonly ModelSource[],
  onProgress: OnProgress,
  signal: AbortSignal,
): Promise<string | ModelFilesMissing> => {
  const { context } = deps
  const found = context.isRenewal ? undefined : await findFirst(context, sources, signal)
  if (found) {
    warnUnpinned(deps, found.source)
    if (await keepLocked(deps, model, found.source)) return found.path
  }
  const reasons: string[] = []
  for (const source of sources) {
    const asPinned = () => pullOne(deps, model, asLocked(context, source), onProgress, signal)
    try {
      const path = await asPinned()
      return (await keepLocked(deps, model, source)) ? path : await asPinned()
    } catch (error) {
      if (signal.aborted) throw error
      if (error instanceof NotRenewed)
        return new ModelFilesMissing({ model, message: error.message })
      const reason = reasonOf(context, source, error)
      const shown = shownUrl(source.url)
      context.log.warn("model.source_unusable", `a model source can't be used: ${reason}`, {
        model,
        source: shown,
      })
      reasons.push(`  ${shown}: ${reason}`)
    }
  }
  const list =
    reasons.length === 0 ? "it has no sources" : `no source could be used:\n${reasons.join("\n")}`
  return new ModelFilesMissing({
    model,
    message: `The files of model ${model} are missing: ${list}`,
  })
}
