import { createHash } from "node:crypto"
import { mkdir, readdir, rename, rm, stat } from "node:fs/promises"
import { dirname, join } from "node:path"
import { unpack } from "./archive/unpack.ts"
import type { PullContext, Report } from "./context.ts"
import type { RemoteFile } from "./download/download.ts"
import { download } from "./download/download.ts"
import { readValidator, removePart, validatorPath } from "./download/part-file.ts"
import { DamagedContent } from "./failure.ts"
import type { Origin, Wanted } from "./sources/artifact.ts"
import { resolveOrigin } from "./sources/resolve.ts"
import { treeDigest } from "./store/digest.ts"
import { onDisk } from "./store/disk.ts"
import { acquireLock, type LockHolder } from "./store/lock.ts"
import { contentPath, type ManifestFile } from "./store/manifest.ts"
import { downloadsDir, findStored, publish, remember, type Stored } from "./store/store.ts"

interface Job {
  readonly context: PullContext
  readonly wanted: Wanted
  readonly report: Report
  readonly signal: AbortSignal
}

interface Fetched {
  readonly file: RemoteFile
  readonly partPath: string
  readonly sha256: string
  readonly bytes: number
}

const stem = ({ context, wanted }: Job): string =>
  join(downloadsDir(context.modelsDir), `${wanted.label}-${wanted.key}`)

const partPathOf = (job: Job, origin: Origin, file: RemoteFile): string => {
  if (origin.files.length === 1) return `${stem(job)}.part`
  return `${stem(job)}.${createHash("sha256").update(file.path).digest("hex").slice(0, 16)}.part`
}

const downloadAll = async (job: Job, origin: Origin): Promise<readonly Fetched[]> => {
  const fetched: Fetched[] = []
  let before = 0
  for (const file of origin.files) {
    const partPath = partPathOf(job, origin, file)
    const single = origin.files.length === 1
    const report: Report = (done, total) => job.report(before + done, single ? total : undefined)
    const extraRoom = origin.form === "plain" ? 0 : 1
    fetched.push({
      file,
      partPath,
      ...(await download({
        context: job.context,
        file,
        partPath,
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
  fetched: readonly Fetched[],
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
  job: Job,
  building: string,
  archive: string,
  form: "zip" | "tgz",
): Promise<readonly ManifestFile[]> => {
  try {
    return await unpack({ archive, form, into: contentPath(building), signal: job.signal })
  } catch (error) {
    // the room of a half unpacked folder is better free
    await rm(building, { recursive: true, force: true })
    if (error instanceof DamagedContent) await removePart(archive)
    throw error
  }
}

const publishedDigest = ({ wanted }: Job, fetched: readonly Fetched[]): string => {
  if (wanted.kind !== "tree") return fetched[0]?.sha256 ?? ""
  const sha256 = treeDigest(fetched.map(({ file, sha256 }) => ({ path: file.path, sha256 })))
  if (wanted.sha256 !== undefined && wanted.sha256 !== sha256)
    throw new DamagedContent(`the folder has the digest ${sha256}, not the pinned ${wanted.sha256}`)
  return sha256
}

const leftovers = async (job: Job): Promise<readonly string[]> => {
  const folder = downloadsDir(job.context.modelsDir)
  const names = await readdir(folder).catch(() => [])
  return names
    .filter((name) => name.includes(`-${job.wanted.key}.`))
    .map((name) => join(folder, name))
}

/** Download, digest, unpack, publish. The lock is held. */
const fetchAndKeep = async (job: Job): Promise<Stored> => {
  const { context, wanted, signal } = job
  const origin = await resolveOrigin(context, wanted, signal)
  const fetched = await downloadAll(job, origin)
  const sha256 = publishedDigest(job, fetched)
  const building = `${stem(job)}.building`
  const stored = await onDisk(context.modelsDir, async () => {
    const first = fetched[0]
    const files =
      origin.form === "plain" || first === undefined
        ? await moveInto(building, fetched)
        : await unpackInto(job, building, first.partPath, origin.form)
    signal.throwIfAborted()
    return publish(context.modelsDir, building, wanted.label, {
      format: 1,
      source: wanted.name,
      kind: wanted.kind,
      sha256,
      files,
    })
  })
  if (wanted.sha256 === undefined) await remember(context.modelsDir, wanted, sha256)
  for (const path of await leftovers(job)) await rm(path, { recursive: true, force: true })
  return stored
}

/** The waiter shows the bytes that the other process writes. */
const makeWaiter = (job: Job) => {
  let told = false
  return async (holder: LockHolder | undefined): Promise<void> => {
    if (!told)
      job.context.log.info(
        "model.pull_waiting",
        "another process pulls the same model; waiting for it",
        {
          source: job.wanted.name,
          pid: holder?.pid,
          host: holder?.host,
        },
      )
    told = true
    let done = 0
    let total: number | undefined
    for (const path of (await leftovers(job)).filter((path) => path.endsWith(".part"))) {
      done += await stat(path).then(
        ({ size }) => size,
        () => 0,
      )
      total = (await readValidator(path))?.totalBytes
    }
    if (done > 0) job.report(done, job.wanted.kind === "tree" ? undefined : total)
  }
}

/** Makes sure that what is wanted is in the cache: found, pulled by another process meanwhile, or pulled here. Fails with `SourceFailed`. */
export const obtain = async (
  context: PullContext,
  wanted: Wanted,
  report: Report,
  signal: AbortSignal,
): Promise<Stored> => {
  const found = await findStored(context.modelsDir, wanted)
  if (found) return found
  const folder = downloadsDir(context.modelsDir)
  await onDisk(folder, () => mkdir(folder, { recursive: true }))
  const job = { context, wanted, report, signal }
  const lock = await onDisk(folder, () =>
    acquireLock({
      context,
      path: join(folder, `${wanted.key}.lock`),
      signal,
      onWait: makeWaiter(job),
    }),
  )
  try {
    return (
      (await findStored(context.modelsDir, wanted)) ??
      (await fetchAndKeep({ ...job, signal: AbortSignal.any([signal, lock.lost]) }))
    )
  } catch (error) {
    if (signal.aborted) throw signal.reason
    if (!lock.lost.aborted) throw error
  } finally {
    await lock.release()
  }
  // this process was suspended for so long that another one took over: wait for that one
  return obtain(context, wanted, report, signal)
}
