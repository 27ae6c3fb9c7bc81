import { createHash, randomBytes } from "node:crypto"
import { createReadStream, mkdirSync } from "node:fs"
import { open, rename, rm } from "node:fs/promises"
import { dirname, join } from "node:path"
import { Effect, Stream } from "effect"
import { PortError } from "../../core/errors.ts"
import type { BlobInfo, Storage, StorageError } from "../../core/ports/storage.ts"
import { readLines, verifyFile, writeLines } from "./lines-file.ts"
import type { WrittenFile } from "./manifest.ts"

/** A line of the list of blobs. */
export interface BackedUpBlob {
  readonly key: string
  readonly bytes: number
  readonly sha256: string
}

export type Report = (what: string, done: number, of?: number) => void

/** Blobs are stored by their content, so that equal ones are there once and any key is fine. */
const pathOf = (sha256: string): string => join("blobs", sha256.slice(0, 2), sha256)

const failed = (cause: unknown) =>
  new PortError({
    port: "backup",
    message: cause instanceof Error ? cause.message : String(cause),
    cause,
  })
const attempt = <A>(work: () => Promise<A>) => Effect.tryPromise({ try: work, catch: failed })

/** Copies a blob into the folder; undefined when it was removed meanwhile. */
const copyOut = (storage: Storage, folder: string, { key }: BlobInfo) =>
  Effect.acquireUseRelease(
    attempt(async () => {
      const draft = join(folder, "blobs", `draft-${randomBytes(6).toString("hex")}`)
      mkdirSync(dirname(draft), { recursive: true, mode: 0o700 })
      return { draft, file: await open(draft, "wx", 0o600) }
    }),
    ({ draft, file }) =>
      Effect.gen(function* () {
        const hash = createHash("sha256")
        let bytes = 0
        yield* Stream.runForEach(storage.get(key), (chunk) =>
          attempt(async () => {
            hash.update(chunk)
            bytes += chunk.byteLength
            await file.writeFile(chunk)
          }),
        )
        const sha256 = hash.digest("hex")
        yield* attempt(async () => {
          await file.sync()
          mkdirSync(dirname(join(folder, pathOf(sha256))), { recursive: true, mode: 0o700 })
          await rename(draft, join(folder, pathOf(sha256)))
        })
        return { key, bytes, sha256 } satisfies BackedUpBlob as BackedUpBlob | undefined
      }),
    ({ draft, file }) =>
      attempt(async () => {
        await file.close()
        await rm(draft, { force: true })
      }).pipe(Effect.ignore),
  ).pipe(Effect.catchTag("BlobMissing", () => Effect.succeed(undefined)))

/**
 * Copies blobs in passes: the second one copies what is new or was replaced since the first, and
 * forgets nothing: a row of the snapshot may name a blob that is removed after it.
 */
export const makeBlobCopy = (storage: Storage, folder: string, report: Report) => {
  const copied = new Map<string, BackedUpBlob & { readonly etag: string }>()
  const pass: Effect.Effect<void, StorageError> = Stream.runForEach(storage.list(""), (info) =>
    copied.get(info.key)?.etag === info.etag
      ? Effect.void
      : Effect.map(copyOut(storage, folder, info), (blob) => {
          if (blob) copied.set(info.key, { ...blob, etag: info.etag })
          report("blobs", copied.size)
        }),
  )
  const close = attempt(async () => {
    const list = writeLines(folder, "blobs.jsonl.gz")
    let size = 0
    for (const { key, bytes, sha256 } of copied.values()) {
      size += bytes
      await list.write([{ key, bytes, sha256 }])
    }
    return { ...(await list.close()), count: copied.size, size }
  })
  return { pass, close }
}

/** Rejects unless each blob of the list is there and unchanged. */
export const verifyBlobs = async (folder: string, list: WrittenFile, report: Report) => {
  await verifyFile(folder, list)
  const seen = new Set<string>()
  for await (const line of readLines(folder, list)) {
    const { bytes, sha256 } = line as BackedUpBlob
    if (!seen.has(sha256)) await verifyFile(folder, { file: pathOf(sha256), bytes, sha256 })
    seen.add(sha256)
    report("blobs verified", seen.size)
  }
}

const copyIn = (storage: Storage, folder: string, { key, bytes, sha256 }: BackedUpBlob) => {
  const body = Stream.fromAsyncIterable<Uint8Array, PortError>(
    createReadStream(join(folder, pathOf(sha256))),
    failed,
  )
  return storage.put(key, body, bytes)
}

/** Puts all blobs of the list into the storage. Returns how many. */
export const restoreBlobs = (
  storage: Storage,
  folder: string,
  list: WrittenFile & { readonly count: number },
  report: Report,
): Effect.Effect<number, StorageError> => {
  let done = 0
  return Effect.map(
    Stream.runForEach(Stream.fromAsyncIterable(readLines(folder, list), failed), (line) =>
      Effect.map(copyIn(storage, folder, line as BackedUpBlob), () =>
        report("blobs", ++done, list.count),
      ),
    ),
    () => done,
  )
}

/** The key of some blob; undefined when the storage is empty. */
export const firstBlob = (storage: Storage): Effect.Effect<string | undefined, StorageError> =>
  Effect.map(Stream.runCollect(Stream.take(storage.list(""), 1)), ([info]) => info?.key)
