import { Effect } from "effect"
import {
  type Clock,
  type Log,
  type ModelId,
  type ModelSource,
  systemClock,
} from "../../../core/index.ts"
import { chooseFetch } from "./choose-fetch.ts"
import type { Env, Fetch, PullContext, PullTiming } from "./context.ts"
import { usualTiming } from "./context.ts"
import { makeSharedJobs } from "./download/shared-jobs.ts"
import { throttled } from "./download/throttle.ts"
import { SourceFailed, shownUrl } from "./failure.ts"
import { obtain } from "./fetch-artifact.ts"
import { interruptible } from "./interruptible.ts"
import { type ModelFiles, ModelFilesMissing, type PullProgress } from "./service.ts"
import { useLocal, verifyLocal } from "./sources/local.ts"
import { type ParsedSource, parseAll, parseSource } from "./sources/parsed-source.ts"
import { freeBytes } from "./store/disk.ts"
import { findDamage, removeManifest } from "./store/manifest.ts"
import { findManifest, findStored, type Place, placeOf, type Stored } from "./store/store.ts"

export interface ModelFilesOptions {
  /** Absolute. Made when something is pulled; may be read-only when all is there. */
  readonly modelsDir: string
  readonly log: Log
  readonly fetch?: Fetch
  /** For the settings of pip, npm, the hub and proxies. */
  readonly env?: Env
  /** What relative `file:` paths and the project's .npmrc are below. */
  readonly cwd?: string
  readonly clock?: Pick<Clock, "nowMs">
  readonly timing?: Partial<PullTiming>
  readonly freeBytes?: PullContext["freeBytes"]
}

/** The kernel's `ModelFiles`, and what the command line needs beside it. */
export interface ModelFilesStore extends ModelFiles {
  /** The sources of these that are in the cache, each with the digest that it turned out to have: for a lock file. Local folders have none. */
  pinned(sources: readonly ModelSource[]): Effect.Effect<readonly ModelSource[]>
}

interface Found extends Place {
  readonly source: ModelSource
}

interface PullDeps {
  readonly context: PullContext
  readonly share: ReturnType<typeof makeSharedJobs<Stored>>
  /** Sources without a digest that were warned of. */
  readonly warned: Set<string>
}

type OnProgress = (progress: PullProgress) => void

const findOne = async (
  context: PullContext,
  parsed: ParsedSource,
  signal: AbortSignal,
): Promise<Found | undefined> => {
  try {
    const stored =
      "wanted" in parsed ? await findStored(context.modelsDir, parsed.wanted) : undefined
    const place =
      "local" in parsed
        ? await useLocal(context, parsed.local, signal)
        : stored && placeOf(stored, parsed.wanted)
    return place && { ...place, source: parsed.source }
  } catch (error) {
    if (error instanceof SourceFailed) return undefined
    throw error
  }
}

const findFirst = async (
  context: PullContext,
  sources: readonly ModelSource[],
  signal: AbortSignal,
): Promise<Found | undefined> => {
  for (const parsed of parseAll(sources)) {
    const found = await findOne(context, parsed, signal)
    if (found) return found
  }
  return undefined
}

/** A local file without a digest is the operator's own affair. */
const warnUnpinned = ({ context, warned }: PullDeps, source: ModelSource): void => {
  if (source.sha256 !== undefined || source.url.startsWith("file:") || warned.has(source.url))
    return
  warned.add(source.url)
  context.log.warn(
    "model.source_unpinned",
    "this model source has no sha256: whatever it serves is used",
    {
      source: shownUrl(source.url),
    },
  )
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
  const { wanted, shown } = parsed
  warnUnpinned(deps, source)
  const report = throttled(
    (doneBytes, totalBytes) => onProgress({ model, source: shown, doneBytes, totalBytes }),
    context.timing.reportMs,
    context.clock.nowMs,
  )
  const stored = await share(
    `${wanted.kind} ${wanted.key}`,
    (all, stop) => obtain(context, wanted, all, stop),
    report,
    signal,
  )
  const place = placeOf(stored, wanted)
  if (!place)
    throw new SourceFailed(
      `there is no such path in it; it holds ${stored.manifest.files
        .slice(0, 8)
        .map(({ path }) => path)
        .join(", ")}${stored.manifest.files.length > 8 ? " ..." : ""}`,
    )
  return place.path
}

const pull = async (
  deps: PullDeps,
  model: ModelId,
  sources: readonly ModelSource[],
  onProgress: OnProgress,
  signal: AbortSignal,
): Promise<string | ModelFilesMissing> => {
  const { context } = deps
  const found = await findFirst(context, sources, signal)
  if (found) {
    warnUnpinned(deps, found.source)
    return found.path
  }
  const reasons: string[] = []
  for (const source of sources) {
    try {
      return await pullOne(deps, model, source, onProgress, signal)
    } catch (error) {
      if (signal.aborted) throw error
      const reason = error instanceof Error ? error.message : String(error)
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

const verifyOne = async (
  context: PullContext,
  parsed: ParsedSource,
  signal: AbortSignal,
): Promise<readonly string[] | undefined> => {
  if ("local" in parsed) {
    await verifyLocal(context, parsed.local, signal)
    return []
  }
  const stored = await findManifest(context.modelsDir, parsed.wanted)
  if (stored === undefined) return undefined
  const damage = await findDamage(stored.folder, stored.manifest, signal)
  if (damage.length > 0) await removeManifest(stored.folder)
  else if (placeOf(stored, parsed.wanted) === undefined) return ["the path is not in it"]
  return damage
}

const verify = async (
  context: PullContext,
  sources: readonly ModelSource[],
  signal: AbortSignal,
): Promise<readonly string[]> => {
  const problems: string[] = []
  const absent: string[] = []
  for (const source of sources) {
    const shown = shownUrl(source.url)
    try {
      const damage = await verifyOne(context, parseSource(source), signal)
      if (damage === undefined) absent.push(shown)
      else problems.push(...damage.map((text) => `${shown}: ${text}`))
    } catch (error) {
      if (signal.aborted) throw error
      problems.push(`${shown}: ${error instanceof Error ? error.message : String(error)}`)
    }
  }
  // a model needs one of its sources, not all
  return absent.length === sources.length
    ? [`not pulled yet: ${absent.join(", ") || "no sources"}`]
    : problems
}

const pinned = async (
  context: PullContext,
  sources: readonly ModelSource[],
): Promise<readonly ModelSource[]> => {
  const known: ModelSource[] = []
  for (const parsed of parseAll(sources)) {
    const stored =
      "wanted" in parsed ? await findStored(context.modelsDir, parsed.wanted) : undefined
    if (stored) known.push({ url: parsed.source.url, sha256: stored.manifest.sha256 })
  }
  return known
}

/** Model files under `modelsDir`, from any of their sources. See README.md for the layout and the rules. */
export const makeModelFiles = (options: ModelFilesOptions): ModelFilesStore => {
  const { modelsDir, log, env = process.env, cwd = process.cwd(), clock = systemClock } = options
  const context: PullContext = {
    modelsDir,
    log,
    clock,
    env,
    cwd,
    fetch: options.fetch ?? chooseFetch(env),
    timing: { ...usualTiming, ...options.timing },
    freeBytes: options.freeBytes ?? freeBytes,
  }
  const deps: PullDeps = { context, share: makeSharedJobs<Stored>(), warned: new Set() }
  return {
    pull: (model, sources, onProgress) =>
      interruptible((signal) => pull(deps, model, sources, onProgress, signal)).pipe(
        Effect.flatMap((result) =>
          typeof result === "string" ? Effect.succeed(result) : Effect.fail(result),
        ),
      ),
    find: (sources) => interruptible((signal) => findFirst(context, sources, signal)),
    verify: (sources) => interruptible((signal) => verify(context, sources, signal)),
    pinned: (sources) => interruptible(() => pinned(context, sources)),
  }
}
