import { Effect, Stream } from "effect"
import {
  BlobTooLarge,
  isBlobKey,
  type Storage,
  type StorageError,
} from "../../core/ports/storage.ts"
import { type ByteRange, readBlob, removeBlob, statBlob } from "./blob-file.ts"
import { badKey, readError, writeError } from "./disk-errors.ts"
import { append, discard, type Incoming, openIncoming, publish } from "./incoming.ts"
import { listBlobs } from "./walk.ts"

const writing = <A>(key: string, work: () => Promise<A>) =>
  Effect.tryPromise({ try: work, catch: writeError(key) })

const reading = <A>(key: string, work: () => Promise<A>) =>
  Effect.tryPromise({ try: work, catch: readError(key) })

/** A stream that starts anew with each run. */
const streaming = <A>(key: string, items: () => AsyncIterable<A>): Stream.Stream<A, StorageError> =>
  Stream.suspend(() => Stream.fromAsyncIterable(items(), readError(key)))

const receive = <E>(
  file: Incoming,
  key: string,
  body: Stream.Stream<Uint8Array, E>,
  maxBytes: number,
): Effect.Effect<void, StorageError | E> => {
  let bytes = 0
  return Stream.runForEach(body, (chunk): Effect.Effect<void, StorageError> => {
    bytes += chunk.byteLength
    // a write is never interrupted half-way: the source may reuse the chunk's memory
    return bytes > maxBytes
      ? Effect.fail(new BlobTooLarge({ key, maxBytes }))
      : Effect.uninterruptible(writing(key, () => append(file, chunk)))
  })
}

/** Stores blobs as files below `root`, a real path that `prepareFolder` returned. */
export const makeDiskStorage = (root: string): Storage => {
  const putInto = <E>(
    file: Incoming,
    key: string,
    body: Stream.Stream<Uint8Array, E>,
    maxBytes: number,
  ) =>
    receive(file, key, body, maxBytes).pipe(
      Effect.andThen(Effect.uninterruptible(writing(key, () => publish(file, root, key)))),
    )

  const put = <E>(key: string, body: Stream.Stream<Uint8Array, E>, maxBytes: number) =>
    Effect.acquireUseRelease(
      writing(key, () => openIncoming(root)),
      (file) => putInto(file, key, body, maxBytes),
      (file) => Effect.ignore(writing(key, () => discard(file))),
    )
  const get = (key: string, range: ByteRange = { from: 0 }) =>
    streaming(key, () => readBlob(root, key, range))
  const stat = (key: string) => reading(key, () => statBlob(root, key))
  const remove = (key: string) => Effect.uninterruptible(writing(key, () => removeBlob(root, key)))

  return {
    put: (key, body, maxBytes) =>
      isBlobKey(key) ? put(key, body, maxBytes) : Effect.fail(badKey(key)),
    get: (key, range) => (isBlobKey(key) ? get(key, range) : Stream.fail(badKey(key))),
    stat: (key) => (isBlobKey(key) ? stat(key) : Effect.fail(badKey(key))),
    remove: (key) => (isBlobKey(key) ? remove(key) : Effect.fail(badKey(key))),
    list: (prefix) => streaming(prefix, () => listBlobs(root, prefix)),
  }
}
