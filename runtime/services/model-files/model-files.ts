import { Effect } from "effect"
import type { RequestInfo, RequestInit } from "undici"
import {
  type Clock,
  type Log,
  type ModelId,
  type ModelSource,
  systemClock,
} from "../../../core/index.ts"
import {
  defaultTiming,
  type Env,
  type Fetch,
  type LockedSource,
  type PullContext,
  type PullTiming,
  type SourceLock,
} from "./context.ts"
import { makeSharedJobs } from "./download/shared-jobs.ts"
import { NotThere, shownUrl } from "./failure.ts"
import {
  findFirst,
  type ModelFilesMissing,
  type PullDeps,
  type PullProgress,
  pull,
} from "./pull.ts"
import { findPath } from "./sources/artifact.ts"
import { verifyLocal } from "./sources/local.ts"
import {
  asLocked,
  findLocked,
  holdsSecret,
  type ParsedSource,
  parseAll,
  parseSource,
} from "./sources/parsed-source.ts"
import { freeBytes } from "./store/disk.ts"
import { findDamage, removeManifest } from "./store/manifest.ts"
import { findManifest, findStored, type Stored } from "./store/store.ts"

export interface ModelFiles {
  /**
   * Returns the local path of the model's file or folder; pulls what is missing. Several processes
   * may pull the same model.
   */
  pull(
    model: ModelId,
    sources: readonly ModelSource[],
    onProgress: (progress: PullProgress) => void,
  ): Effect.Effect<string, ModelFilesMissing>
  /** Finds the first source that is in the cache; downloads nothing. */
  find(
    sources: readonly ModelSource[],
  ): Effect.Effect<
    { readonly path: string; readonly source: ModelSource; readonly bytes: number } | undefined
  >
  /** Hashes what is in the cache again, and returns a sentence for each problem. */
  verify(sources: readonly ModelSource[]): Effect.Effect<readonly string[]>
}

export interface ModelFilesOptions {
  /** Absolute. Made at the first pull; may be read-only if it holds all models. */
  readonly modelsDir: string
  readonly log: Log
  readonly fetch?: Fetch
  /** For the settings of pip, npm, the hub and proxies. */
  readonly env?: Env
  /** Base of relative `file:` paths, and the folder of the project's .npmrc. */
  readonly cwd?: string
  readonly clock?: Pick<Clock, "nowMs">
  readonly timing?: Partial<PullTiming>
  readonly freeBytes?: PullContext["freeBytes"]
  readonly lock?: SourceLock
}

/** `ModelFiles` with what the command line needs besides. */
export interface ModelFilesStore extends ModelFiles {
  /**
   * The sources that are in the cache, each with its digest, for a lock file. Local files and
   * folders are left out.
   */
  pinned(sources: readonly ModelSource[]): Effect.Effect<readonly LockedSource[]>
  /** Pulls what the sources have now, whatever the lock file has, and renews that. */
  renew: ModelFiles["pull"]
  /** What the lock file has of a source without a digest. */
  locked(source: ModelSource): LockedSource | undefined
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
  const stored = await findManifest(context.modelsDir, parsed.artifact)
  if (stored === undefined) return undefined
  const damage = await findDamage(stored.folder, stored.manifest, signal)
  if (damage.length > 0) await removeManifest(stored.folder)
  else if (findPath(stored, parsed.artifact) === undefined) return ["the path is not in it"]
  return damage
}

const verify = async (
  context: PullContext,
  sources: readonly ModelSource[],
  signal: AbortSignal,
): Promise<readonly string[]> => {
  const problems: string[] = []
  /** Sources that nothing was pulled from, and local files that are not there. */
  const absent: string[] = []
  const missing: string[] = []
  for (const source of sources) {
    const shown = shownUrl(source.url)
    try {
      const damage = await verifyOne(context, parseSource(asLocked(context, source)), signal)
      if (damage === undefined) absent.push(shown)
      else problems.push(...damage.map((text) => `${shown}: ${text}`))
    } catch (error) {
      if (signal.aborted) throw error
      const problem = `${shown}: ${error instanceof Error ? error.message : String(error)}`
      ;(error instanceof NotThere ? missing : problems).push(problem)
    }
  }
  // a model needs only one of its sources
  if (absent.length + missing.length < sources.length) return problems
  const unpulled = absent.length > 0 || missing.length === 0
  return [...missing, ...(unpulled ? [`not pulled yet: ${absent.join(", ") || "no sources"}`] : [])]
}

const pinned = async (
  context: PullContext,
  sources: readonly ModelSource[],
): Promise<readonly LockedSource[]> => {
  const known: LockedSource[] = []
  for (const source of sources) {
    const locked = findLocked(context, source)
    const [parsed] = parseAll(context, [source])
    if (!parsed || !("artifact" in parsed) || holdsSecret(source.url)) continue
    const stored = await findStored(context.modelsDir, parsed.artifact)
    if (stored) known.push(locked ?? { url: source.url, sha256: stored.manifest.sha256 })
  }
  return known
}

/**
 * Node's own fetch, or undici's where the environment sets a proxy, which Node's ignores. Both
 * honour NODE_EXTRA_CA_CERTS.
 */
const chooseFetch = (env: Env): Fetch => {
  const httpProxy = env.http_proxy ?? env.HTTP_PROXY
  const httpsProxy = env.https_proxy ?? env.HTTPS_PROXY
  if (!httpProxy && !httpsProxy) return globalThis.fetch
  const noProxy = env.no_proxy ?? env.NO_PROXY
  const proxies = {
    ...(httpProxy && { httpProxy }),
    ...(httpsProxy && { httpsProxy }),
    ...(noProxy && { noProxy }),
  }
  // only pulls need it
  const load = async () => {
    const { EnvHttpProxyAgent, fetch } = await import("undici")
    return { fetch, dispatcher: new EnvHttpProxyAgent(proxies) }
  }
  let client: ReturnType<typeof load> | undefined
  return (async (input: RequestInfo, init?: RequestInit) => {
    client ??= load()
    const { fetch, dispatcher } = await client
    return fetch(input, { ...init, dispatcher })
  }) as unknown as Fetch
}

/**
 * Runs promise code as an Effect. Interruption aborts the signal and waits for the code to clean
 * up. What it throws is a defect.
 */
const interruptible = <A>(work: (signal: AbortSignal) => Promise<A>): Effect.Effect<A> =>
  Effect.callback<A>((resume) => {
    const controller = new AbortController()
    const done = work(controller.signal).then(
      (value) => resume(Effect.succeed(value)),
      (error) => resume(Effect.die(error)),
    )
    return Effect.promise(() => {
      controller.abort()
      return done
    })
  })

/**
 * Model files under `modelsDir`, from any of their sources. See README.md for the layout and the
 * rules.
 */
export const makeModelFiles = (options: ModelFilesOptions): ModelFilesStore => {
  const { modelsDir, log, env = process.env, cwd = process.cwd(), clock = systemClock } = options
  const context: PullContext = {
    modelsDir,
    log,
    clock,
    env,
    cwd,
    fetch: options.fetch ?? chooseFetch(env),
    timing: { ...defaultTiming, ...options.timing },
    freeBytes: options.freeBytes ?? freeBytes,
    lock: options.lock,
    isRenewal: false,
  }
  const deps: PullDeps = { context, share: makeSharedJobs<Stored>(), warned: new Set() }
  const pullWith =
    (own: PullDeps): ModelFiles["pull"] =>
    (model, sources, onProgress) =>
      interruptible((signal) => pull(own, model, sources, onProgress, signal)).pipe(
        Effect.flatMap((result) =>
          typeof result === "string" ? Effect.succeed(result) : Effect.fail(result),
        ),
      )
  return {
    pull: pullWith(deps),
    renew: pullWith({ ...deps, context: { ...context, isRenewal: true } }),
    locked: (source) => findLocked(context, source),
    find: (sources) => interruptible((signal) => findFirst(context, sources, signal)),
    verify: (sources) => interruptible((signal) => verify(context, sources, signal)),
    pinned: (sources) => interruptible(() => pinned(context, sources)),
  }
}
