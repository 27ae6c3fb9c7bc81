import { Effect } from "effect"
import { EnvHttpProxyAgent, type RequestInfo, type RequestInit, fetch as undiciFetch } from "undici"
import {
  type Clock,
  type Log,
  type ModelId,
  type ModelSource,
  systemClock,
} from "../../../core/index.ts"
import { type Env, type Fetch, type PullContext, type PullTiming, usualTiming } from "./context.ts"
import { makeSharedJobs } from "./download/shared-jobs.ts"
import { shownUrl } from "./failure.ts"
import {
  findFirst,
  type ModelFilesMissing,
  type PullDeps,
  type PullProgress,
  pull,
} from "./pull.ts"
import { placeOf } from "./sources/artifact.ts"
import { verifyLocal } from "./sources/local.ts"
import { type ParsedSource, parseAll, parseSource } from "./sources/parsed-source.ts"
import { freeBytes } from "./store/disk.ts"
import { findDamage, removeManifest } from "./store/manifest.ts"
import { findManifest, findStored, type Stored } from "./store/store.ts"

export interface ModelFiles {
  /** The local path of the model's file or folder; pulls what is missing. Two processes that pull the same model don't fight. */
  pull(
    model: ModelId,
    sources: readonly ModelSource[],
    onProgress: (progress: PullProgress) => void,
  ): Effect.Effect<string, ModelFilesMissing>
  /** The local path if it is there already; downloads nothing. */
  find(
    sources: readonly ModelSource[],
  ): Effect.Effect<
    { readonly path: string; readonly source: ModelSource; readonly bytes: number } | undefined
  >
  /** Hashes what is in the cache again. The texts say what is wrong. */
  verify(sources: readonly ModelSource[]): Effect.Effect<readonly string[]>
}

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

/** Node's own fetch; where a proxy is set in the environment, which that one does not see, undici's with the proxy. Both honour NODE_EXTRA_CA_CERTS. */
const chooseFetch = (env: Env): Fetch => {
  const httpProxy = env.http_proxy ?? env.HTTP_PROXY
  const httpsProxy = env.https_proxy ?? env.HTTPS_PROXY
  if (!httpProxy && !httpsProxy) return globalThis.fetch
  const noProxy = env.no_proxy ?? env.NO_PROXY
  const dispatcher = new EnvHttpProxyAgent({
    ...(httpProxy && { httpProxy }),
    ...(httpsProxy && { httpsProxy }),
    ...(noProxy && { noProxy }),
  })
  return ((input: RequestInfo, init?: RequestInit) =>
    undiciFetch(input, { ...init, dispatcher })) as unknown as Fetch
}

/** Runs promise code as an Effect. Interruption aborts the signal and waits until the code has cleaned up. What it throws is a defect. */
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
