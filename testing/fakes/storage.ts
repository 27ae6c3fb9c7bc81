import { Effect, Stream } from "effect"
import { PortError } from "../../core/errors.ts"
import {
  type BlobInfo,
  BlobMissing,
  BlobTooLarge,
  isBlobKey,
  type Storage,
  type StorageError,
  StorageFull,
} from "../../core/ports/storage.ts"

interface Blob {
  readonly info: BlobInfo
  readonly body: Uint8Array
}

const badKey = (key: string) =>
  new PortError({ port: "storage", message: `${JSON.stringify(key)} is no blob key.` })

const byKey = (a: Blob, b: Blob): number => (a.info.key < b.info.key ? -1 : 1)

/** Blobs in memory. With `capacityBytes` it can be full. */
export const fakeStorage = (capacityBytes = Number.POSITIVE_INFINITY): Storage => {
  const blobs = new Map<string, Blob>()
  let version = 0

  const usedBytes = () => [...blobs.values()].reduce((sum, { info }) => sum + info.bytes, 0)

  const find = (key: string): Effect.Effect<Blob, StorageError> => {
    if (!isBlobKey(key)) return Effect.fail(badKey(key))
    const blob = blobs.get(key)
    return blob === undefined ? Effect.fail(new BlobMissing({ key })) : Effect.succeed(blob)
  }

  const collect = <E>(
    key: string,
    body: Stream.Stream<Uint8Array, E>,
    maxBytes: number,
  ): Effect.Effect<Uint8Array, StorageError | E> =>
    Effect.suspend(() => {
      const chunks: Uint8Array[] = []
      let bytes = 0
      const take = (chunk: Uint8Array): Effect.Effect<void, StorageError> => {
        bytes += chunk.byteLength
        if (bytes > maxBytes) return Effect.fail(new BlobTooLarge({ key, maxBytes }))
        if (usedBytes() + bytes > capacityBytes) return Effect.fail(new StorageFull({ key }))
        return Effect.sync(() => void chunks.push(chunk))
      }
      return Effect.map(Stream.runForEach(body, take), () => new Uint8Array(Buffer.concat(chunks)))
    })

  const keep = (key: string, body: Uint8Array): BlobInfo => {
    const info = { key, bytes: body.byteLength, etag: String(++version) }
    blobs.set(key, { info, body })
    return info
  }

  return {
    put: (key, body, maxBytes) =>
      isBlobKey(key)
        ? Effect.map(collect(key, body, maxBytes), (bytes) => keep(key, bytes))
        : Effect.fail(badKey(key)),
    get: (key, { from, to = Number.POSITIVE_INFINITY } = { from: 0 }) =>
      Stream.unwrap(
        Effect.map(find(key), ({ body }) =>
          from < body.byteLength && from <= to
            ? Stream.make(body.slice(from, to + 1))
            : Stream.empty,
        ),
      ),
    stat: (key) => Effect.map(find(key), ({ info }) => info),
    remove: (key) =>
      isBlobKey(key) ? Effect.sync(() => void blobs.delete(key)) : Effect.fail(badKey(key)),
    list: (prefix) =>
      Stream.suspend(() =>
        Stream.fromIterable(
          [...blobs.values()].filter(({ info }) => info.key.startsWith(prefix)).sort(byKey),
        ),
      ).pipe(Stream.map(({ info }) => info)),
  }
}
