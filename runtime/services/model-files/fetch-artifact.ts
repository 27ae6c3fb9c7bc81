import { createHash } from "node:crypto"
import { mkdir, readdir, rename, rm, stat } from "node:fs/promises"
import { dirname, join } from "node:path"
import { makeFolders } from "../../../core/folders.ts"
import { unpack } from "./archive/unpack.ts"
import type { PullContext, Report } from "./context.ts"
import type { RemoteFile } from "./download/download.ts"
import { download } from "./download/download.ts"
import { readValidator, removePart, validatorPath } from "./download/part-file.ts"
import { DamagedContent } from "./failure.ts"
import type { Artifact, ResolvedSource } from "./sources/artifact.ts"
import { resolveSource } from "./sources/resolve.ts"
import { treeDigest } from "./store/digest.ts"
import { ensureRoom, onDisk } from "./store/disk.ts"
import { acquireLock, type LockHolder } from "./store/lock.ts"
import { contentPath, type ManifestFile } from "./store/manifest.ts"
import { downloadsDir, findStored, publish, readPin, type Stored, writePin } from "./store/store.ts"

interface FetchJob {
  readonly context: PullContext
  readonly artifact: Artifact
  readonly report: Report
  readonly signal: AbortSignal
}

interface DownloadedFile {
  readonly file: RemoteFile
  readonly partPath: string
  readonly sha256: string
  readonly bytes: number
}

const stem = ({ context, artifact }: FetchJob): string =>
  join(downloadsDir(context.modelsDir), `${artifact.label}-${artifact.key}`)

const partPathOf = (job: FetchJob, source: ResolvedSource, file: RemoteFile): string => {
  if (source.files.length === 1) return `${stem(job)}.part`
  return `${stem(job)}.${createHash("sha256").update(file.path).digest("hex").slice(0, 16)}.part`
}

/** The size of all files together, where the index says it of each. */
const totalOf = ({ files }: ResolvedSource): number | undefined =>
  files.reduce<number | undefined>(
    (sum, { bytes }) => (sum === undefined || bytes === undefined ? undefined : sum + bytes),
    0,
  )

/** Refuses a folder that does not fit before any of it is downloaded. */
const ensureRoomForAll = async (
  job: FetchJob,
  source: ResolvedSource,
  total: number | undefined,
): Promise<void> => {
  if (total === undefined || source.files.length === 1) return
  let here = 0
  for (const file of source.files)
    here += (await stat(partPathOf(job, source, file)).catch(() => undefined))?.size ?? 0
  await ensureRoom(job.context, downloadsDir(job.context.modelsDir), total - here)
}

const downloadAll = async (
  job: FetchJob,
  source: ResolvedSource,
): Promise<readonly DownloadedFile[]> => {
  const fetched: DownloadedFile[] = []
  let before = 0
  const all = totalOf(source)
  await ensureRoomForAll(job, source, all)
  for (const file of source.files) {
    const partPath = partPathOf(job, source, file)
    const single = source.files.length === 1
    const report: Report = (done, total) => job.report(before + done, single ? total : all)
    const extraRoom = source.form === "plain" ? 0 : 1
    fetched.push({
      file,
      partPath,
      ...(await download({
        context: job.context,
        file,
        partPath,
        isPinned: file.sha256 === job.artifact.sha256,
        extraRoom,
        report,
        signal: job.signal,
      })),
    })
    before += fetched.at(-1)?.bytes ?? 0
  }
  job.report(before, before)
  return fetched
}

const moveInto = async (
  building: string,
  fetched: readonly DownloadedFile[],
): Promise<readonly ManifestFile[]> => {
  await rm(building, { recursive: true, force: true })
  for (const { file, partPath } of fetched) {
    const target = contentPath(building, file.path)
    await mkdir(dirname(target), { recursive: true })
    await rename(partPath, target)
    await rm(validatorPath(partPath), { force: true })
  }
  return fetched.map(({ file, sha256, bytes }) => ({ path: file.path, sha256, bytes }))
}

const unpackInto = async (
  job: FetchJob,
  building: string,
  archive: string,
  form: "zip" | "tgz",
): Promise<readonly ManifestFile[]> => {
  try {
    return await unpack({ archive, form, into: contentPath(building), signal: job.signal })
  } catch (error) {
    // free the space of a half unpacked folder
    await rm(building, { recursive: true, force: true })
    if (error instanceof DamagedContent) await removePart(archive)
    throw error
  }
}

const publishedDigest = ({ artifact }: FetchJob, fetched: readonly DownloadedFile[]): string => {
  if (artifact.kind !== "tree") return fetched[0]?.sha256 ?? ""
  const sha256 = treeDigest(fetched.map(({ file, sha256 }) => ({ path: file.path, sha256 })))
  if (artifact.sha256 !== undefined && artifact.sha256 !== sha256)
    throw new DamagedContent(
      `the folder has the digest ${sha256}, not the pinned ${artifact.sha256}`,
    )
  return sha256
}

const leftovers = async (job: FetchJob): Promise<readonly string[]> => {
  const folder = downloadsDir(job.context.modelsDir)
  const names = await readdir(folder).catch(() => [])
  return names
    .filter((name) => name.includes(`-${job.artifact.key}.`))
    .map((name) => join(folder, name))
}

const keepPin = async ({ context, artifact }: FetchJob, source: ResolvedSource, sha256: string) => {
  const { commit } = source
  if (artifact.sha256 === undefined)
    await writePin(context.modelsDir, artifact, { sha256, ...(commit !== undefined && { commit }) })
}

/** What the source announces may be here already, from another source or an earlier commit. */
const findAnnounced = async (job: FetchJob, source: ResolvedSource) => {
  const [only, ...more] = source.files
  const { context, artifact } = job
  // a commit never changes
  const pin = source.commit && (await readPin(context.modelsDir, artifact))
  if (pin && pin.commit === source.commit) return findStored(context.modelsDir, artifact)
  if (only?.sha256 === undefined || more.length > 0 || artifact.kind === "tree") return undefined
  const stored = await findStored(context.modelsDir, { ...artifact, sha256: only.sha256 })
  if (stored) await keepPin(job, source, only.sha256)
  return stored
}

/** Downloads, checks the digest, unpacks and publishes. The caller holds the lock. */
const fetchAndKeep = async (job: FetchJob): Promise<Stored> => {
  const { context, artifact, signal } = job
  const source = await resolveSource(context, artifact, signal)
  const here = await findAnnounced(job, source)
  if (here) return here
  const fetched = await downloadAll(job, source)
  const sha256 = publishedDigest(job, fetched)
  const building = `${stem(job)}.building`
  const stored = await onDisk(context.modelsDir, async () => {
    const first = fetched[0]
    const files =
      source.form === "plain" || first === undefined
        ? await moveInto(building, fetched)
        : await unpackInto(job, building, first.partPath, source.form)
    signal.throwIfAborted()
    return publish(context.modelsDir, building, artifact.label, {
      format: 1,
      source: artifact.name,
      kind: artifact.kind,
      sha256,
      files,
    })
  })
  await keepPin(job, source, sha256)
  for (const path of await leftovers(job)) await rm(path, { recursive: true, force: true })
  return stored
}

/** Reports the progress of the process that holds the lock. */
const makeWaiter = (job: FetchJob) => {
  let announced = false
  return async (holder: LockHolder | undefined): Promise<void> => {
    if (!announced)
      job.context.log.info(
        "model.pull_waiting",
        "another process pulls the same model; waiting for it",
        {
          source: job.artifact.name,
          pid: holder?.pid,
          host: holder?.host,
        },
      )
    announced = true
    let done = 0
    let total: number | undefined
    for (const path of (await leftovers(job)).filter((path) => path.endsWith(".part"))) {
      done += await stat(path).then(
        ({ size }) => size,
        () => 0,
      )
      total = (await readValidator(path))?.totalBytes
    }
    if (done > 0) job.report(done, job.artifact.kind === "tree" ? undefined : total)
  }
}

/** A renewal looks at the source even where the cache has what it had. */
const findKnown = (context: PullContext, artifact: Artifact) =>
  context.isRenewal && artifact.sha256 === undefined
    ? Promise.resolve(undefined)
    : findStored(context.modelsDir, artifact)

/**
 * Makes sure that the artifact is in the cache: found, pulled by another process meanwhile, or
 * pulled here. Fails with `SourceFailed`.
 */
export const fetchArtifact = async (
  context: PullContext,
  artifact: Artifact,
  report: Report,
  signal: AbortSignal,
): Promise<Stored> => {
  const found = await findKnown(context, artifact)
  if (found) return found
  const folder = downloadsDir(context.modelsDir)
  await onDisk(folder, async () => makeFolders(folder))
  const job = { context, artifact, report, signal }
  const lock = await onDisk(folder, () =>
    acquireLock({
      context,
      path: join(folder, `${artifact.key}.lock`),
      signal,
      onWait: makeWaiter(job),
    }),
  )
  try {
    return (
      (await findKnown(context, artifact)) ??
      (await fetchAndKeep({ ...job, signal: AbortSignal.any([signal, lock.lost]) }))
    )
  } catch (error) {
    if (signal.aborted) throw signal.reason
    if (!lock.lost.aborted) throw error
  } finally {
    await lock.release()
  }
  // this process was suspended for so long that another one took over: wait for it
  return fetchArtifact(context, artifact, report, signal)
}
