import { createHash } from "node:crypto"
import { dirname } from "node:path"
import type { PullContext, Report } from "../context.ts"
import { DamagedContent, SourceFailed, shownUrl, statusFailure } from "../failure.ts"
import { hashInto } from "../store/digest.ts"
import { ensureRoom, onDisk } from "../store/disk.ts"
import { isDiskFull } from "../system-error.ts"
import { openPart, type PartFile, type PartValidator, removePart } from "./part-file.ts"
import { withRetries } from "./retry.ts"
import { openWeb, type WebReply } from "./web.ts"

/** One file on a server. */
export interface RemoteFile {
  readonly url: string
  readonly headers: Readonly<Record<string, string>>
  /** Relative to the root of the stored content. */
  readonly path: string
  /** From the config, else from the index. */
  readonly sha256: string | undefined
  /** Its name in git, where the index says that instead: SHA-1 of a head and the content. */
  readonly gitBlob?: string | undefined
  /** Where the index says it. */
  readonly bytes?: number | undefined
  /** What 401 and 403 of its own server mean, where that is known. */
  refusal?(reply: Pick<Response, "status" | "headers">): SourceFailed
}

export interface Downloaded {
  readonly sha256: string
  readonly bytes: number
}

export interface DownloadOptions {
  readonly context: PullContext
  readonly file: RemoteFile
  readonly partPath: string
  /** Whether the file's digest is the operator's, or the lock file's; otherwise its index says it. */
  readonly isPinned: boolean
  /**
   * Disk space needed besides the file, as a multiple of its size: 1 for an archive that will be
   * unpacked.
   */
  readonly extraRoom: number
  readonly report: Report
  readonly signal: AbortSignal
}

/**
 * If-Range needs a strong validator (RFC 9110, section 13.1.5). A pinned file needs none, as its
 * digest is checked.
 */
const rangeHeaders = (part: PartFile, pinned: boolean): Readonly<Record<string, string>> => {
  if (part.bytes() === 0) return {}
  const { etag, lastModified } = part.validator() ?? {}
  const strong = etag?.startsWith("W/") ? undefined : etag
  const ifRange = strong ?? lastModified
  if (ifRange === undefined && !pinned) return {}
  return { range: `bytes=${part.bytes()}-`, ...(ifRange !== undefined && { "if-range": ifRange }) }
}

const numberIn = (text: string | null | undefined): number | undefined =>
  text && /^\d+$/.test(text) ? Number(text) : undefined

const contentRange = (
  response: Response,
): { start: number | undefined; total: number | undefined } => {
  const match = /^bytes (?:(\d+)-\d+|\*)\/(\d+|\*)$/.exec(
    response.headers.get("content-range") ?? "",
  )
  return { start: numberIn(match?.[1]), total: numberIn(match?.[2]) }
}

const validatorOf = (response: Response, url: string): PartValidator => {
  const encoded = !["", "identity"].includes(response.headers.get("content-encoding") ?? "")
  const etag = response.headers.get("etag")
  const lastModified = response.headers.get("last-modified")
  const totalBytes = encoded ? undefined : numberIn(response.headers.get("content-length"))
  return {
    url,
    ...(etag && !encoded && { etag }),
    ...(lastModified && !encoded && { lastModified }),
    ...(totalBytes !== undefined && { totalBytes }),
  }
}

/** True if a 206 continues exactly after our bytes, of the same version. */
const continues = (response: Response, part: PartFile): boolean => {
  const etag = response.headers.get("etag")
  const known = part.validator()?.etag
  return (
    contentRange(response).start === part.bytes() &&
    (etag === null || known === undefined || etag === known)
  )
}

const append = async (options: DownloadOptions, part: PartFile, reply: WebReply): Promise<void> => {
  const { context, partPath, extraRoom, report } = options
  const total = part.validator()?.totalBytes
  if (total !== undefined)
    await onDisk(partPath, () =>
      ensureRoom(context, dirname(partPath), total - part.bytes() + total * extraRoom),
    )
  report(part.bytes(), total)
  for await (const chunk of reply.chunks) {
    await part.append(chunk)
    report(part.bytes(), total)
  }
  if (total !== undefined && part.bytes() < total)
    throw new SourceFailed(`the connection ended after ${part.bytes()} of ${total} bytes`, {
      retry: true,
    })
  if (total !== undefined && part.bytes() > total)
    throw new DamagedContent(`more than the announced ${total} bytes came`)
}

/** A host that the file's server redirects to may refuse for reasons of its own. */
const failureOf = (file: RemoteFile, { response, url }: WebReply): SourceFailed => {
  const isOwn = new URL(url).origin === new URL(file.url).origin
  const refusal = isOwn && [401, 403].includes(response.status) && file.refusal?.(response)
  return refusal || statusFailure(response, url)
}

const startAgain = async (part: PartFile, url: string, why: string): Promise<never> => {
  await part.restart({ url })
  throw new SourceFailed(why, { retry: true })
}

/**
 * One request. States: empty -> partial (200), partial -> partial (206, broken connection), partial
 * -> empty (changed file: 200,
 * unexpected 206, 416), partial -> complete (all bytes, or 416 with our length).
 */
const attempt = async (options: DownloadOptions, part: PartFile): Promise<void> => {
  const { context, file, signal } = options
  const reply = await openWeb(
    context,
    {
      url: file.url,
      headers: { ...file.headers, ...rangeHeaders(part, file.sha256 !== undefined) },
    },
    signal,
  )
  try {
    const { response } = reply
    if (response.status === 200) await part.restart(validatorOf(response, file.url))
    else if (response.status === 416 && part.bytes() > 0) {
      if (contentRange(response).total === part.bytes()) return
      await startAgain(part, file.url, "the file on the server became shorter")
    } else if (response.status !== 206) throw failureOf(file, reply)
    else if (!continues(response, part))
      await startAgain(part, file.url, "the server did not continue where it was asked to")
    await append(options, part, reply)
  } finally {
    reply.close()
  }
}

const checkGitBlob = async ({ file, partPath, signal }: DownloadOptions, bytes: number) => {
  if (file.gitBlob === undefined) return
  const hash = createHash("sha1").update(`blob ${bytes}\0`)
  await hashInto(hash, partPath, signal)
  if (hash.digest("hex") !== file.gitBlob)
    throw new DamagedContent(
      `${shownUrl(file.url)} is not the git blob ${file.gitBlob} that its index announced`,
    )
}

const isComplete = (part: PartFile, { sha256 }: RemoteFile): boolean =>
  part.bytes() > 0 && part.bytes() === part.validator()?.totalBytes && part.sha256() === sha256

const fill = async (options: DownloadOptions, part: PartFile): Promise<Downloaded> => {
  const { context, file, isPinned, signal } = options
  const resumedFrom = part.bytes()
  const once = () =>
    withRetries(() => attempt(options, part), {
      backoffMs: context.timing.backoffMs,
      signal,
      progress: () => part.bytes(),
    })
  const right = () => file.sha256 === undefined || part.sha256() === file.sha256
  if (!isComplete(part, file)) await once()
  if (!right() && resumedFrom > 0) {
    // the resumed bytes may be wrong (a power failure, a server that ignores If-Range): one try
    // without them
    await part.restart({ url: file.url })
    await once()
  }
  const sha256 = part.sha256()
  if (!right())
    throw new DamagedContent(
      `${shownUrl(file.url)} has sha256 ${sha256}, not the ${isPinned ? `pinned ${file.sha256}` : `${file.sha256} that its index announced`}`,
    )
  await part.sync()
  await checkGitBlob(options, part.bytes())
  options.report(part.bytes(), part.bytes())
  return { sha256, bytes: part.bytes() }
}

/**
 * Downloads into `partPath`, resuming an earlier try, and checks the digest. On success the
 * complete part is left for the caller
 * to rename; on failure or abort it is left for the next try, unless its bytes are wrong or the
 * disk is full. Fails with
 * `SourceFailed`.
 */
export const download = async (options: DownloadOptions): Promise<Downloaded> => {
  const { partPath, file, signal } = options
  try {
    return await onDisk(partPath, async () => {
      const part = await openPart(partPath, file.url, signal)
      try {
        return await fill(options, part)
      } catch (error) {
        // free the space: others use the disk too
        if (error instanceof DamagedContent || isDiskFull(error)) await removePart(partPath)
        throw error
      } finally {
        await part.close()
      }
    })
  } catch (error) {
    if (signal.aborted) throw signal.reason
    throw error
  }
}
