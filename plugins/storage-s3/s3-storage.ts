import { DeleteObjectCommand, HeadObjectCommand } from "@aws-sdk/client-s3"
import { Effect, Exit, Stream } from "effect"
import type { PortError } from "../../core/errors.ts"
import {
  type BlobInfo,
  BlobTooLarge,
  isBlobKey,
  type Storage,
  type StorageError,
} from "../../core/ports/storage.ts"
import { makeLink } from "./link.ts"
import { etagOf, listBlobs } from "./list.ts"
import { PartBuffer } from "./part-buffer.ts"
import { mustHaveBucket } from "./probe.ts"
import { readBlob } from "./read.ts"
import { badKey, isMissing } from "./s3-errors.ts"
import type { Store } from "./store.ts"
import { type PutCondition, partBytesOf, Upload } from "./upload.ts"

export interface S3Storage extends Storage {
  put<E>(
    key: string,
    body: Stream.Stream<Uint8Array, E>,
    maxBytes: number,
    condition?: PutCondition,
  ): Effect.Effect<BlobInfo, StorageError | E>
}

const checked = <A, E>(
  key: string,
  work: () => Effect.Effect<A, E>,
): Effect.Effect<A, E | PortError> =>
  Effect.suspend(
    (): Effect.Effect<A, E | PortError> => (isBlobKey(key) ? work() : Effect.fail(badKey(key))),
  )

/** Reads the body part by part, so that memory holds one part of each put, whatever its size. */
const send = <E>(
  store: Store,
  upload: Upload,
  key: string,
  body: Stream.Stream<Uint8Array, E>,
  maxBytes: number,
): Effect.Effect<BlobInfo, StorageError | E> => {
  const writing = <A>(work: (signal: AbortSignal) => Promise<A>) =>
    Effect.tryPromise({ try: work, catch: store.errors.writing(key) })
  // the id of an upload that nobody knows could not be aborted
  const begin = Effect.uninterruptible(writing(() => upload.begin()))
  let bytes = 0
  let buffer = new PartBuffer(partBytesOf(1))
  const flush = Effect.gen(function* () {
    if (!upload.isInParts) yield* begin
    const part = buffer.take()
    yield* writing((signal) => upload.sendPart(part, signal))
    const partBytes = partBytesOf(upload.nextPart)
    if (partBytes !== buffer.partBytes) buffer = new PartBuffer(partBytes)
  })
  const add = (chunk: Uint8Array): Effect.Effect<void, StorageError> =>
    Effect.gen(function* () {
      bytes += chunk.byteLength
      if (bytes > maxBytes) return yield* new BlobTooLarge({ key, maxBytes })
      for (let at = 0; at < chunk.byteLength; ) {
        // full, and there is more: a body of exactly one part is sent whole
        if (buffer.length === buffer.partBytes) yield* flush
        at += buffer.add(chunk.subarray(at))
      }
    })
  const publish = Effect.gen(function* () {
    if (!upload.isInParts)
      return yield* writing((signal) => upload.sendWhole(buffer.take(), signal))
    yield* flush
    return yield* Effect.uninterruptible(writing(() => upload.complete()))
  })
  return Effect.andThen(
    Stream.runForEach(body, add),
    Effect.map(publish, (etag) => ({ key, bytes, etag })),
  )
}

const put =
  (store: Store): S3Storage["put"] =>
  (key, body, maxBytes, condition) =>
    checked(key, () => {
      const upload = new Upload(store, key, condition)
      return Effect.onExit(send(store, upload, key, body, maxBytes), (exit) =>
        Exit.isSuccess(exit)
          ? Effect.void
          : // what can't be aborted now is swept
            Effect.ignore(Effect.tryPromise(() => upload.abort())),
      )
    })

const stat =
  (store: Store): Storage["stat"] =>
  (key) =>
    checked(key, () =>
      Effect.tryPromise({
        try: async (abortSignal) => {
          const { client, bucket } = store
          const head = new HeadObjectCommand({ Bucket: bucket, Key: store.keys.of(key) })
          const found = await client.send(head, { abortSignal }).catch(async (cause) => {
            if (isMissing(cause)) await mustHaveBucket(store)
            throw cause
          })
          return { key, bytes: found.ContentLength ?? 0, etag: etagOf(found.ETag) }
        },
        catch: store.errors.reading(key),
      }),
    )

const remove =
  (store: Store): Storage["remove"] =>
  (key) =>
    checked(key, () =>
      Effect.tryPromise({
        try: async (abortSignal) => {
          const command = new DeleteObjectCommand({ Bucket: store.bucket, Key: store.keys.of(key) })
          await store.client.send(command, { abortSignal }).catch((cause) => {
            if (!isMissing(cause)) throw cause
          })
        },
        catch: store.errors.asking(key),
      }),
    )

export const makeS3Storage = (store: Store): S3Storage => ({
  ...(store.settings.presignSeconds > 0 && { link: makeLink(store) }),
  put: put(store),
  get: (key, range) =>
    Stream.suspend(
      (): Stream.Stream<Uint8Array, StorageError> =>
        isBlobKey(key)
          ? Stream.fromAsyncIterable(readBlob(store, key, range), store.errors.reading(key))
          : Stream.fail(badKey(key)),
    ),
  stat: stat(store),
  remove: remove(store),
  list: (prefix) =>
    Stream.suspend(() =>
      Stream.fromAsyncIterable(listBlobs(store, prefix), store.errors.asking(`${prefix}*`)),
    ),
})
