import { Effect, Stream } from "effect"
import {
  type BlobInfo,
  BlobMissing,
  BlobTooLarge,
  isBlobKey,
  PortError,
  type Storage,
  type StorageError,
  StorageFull,
} from "rakit/core"

interface Blob {
  readonly info: BlobInfo
  readonly bytes: Uint8Array
}

/** Blobs in the memory of this process, `capacityBytes` of them at most. */
export const makeMemoryStorage = (capacityBytes: number): Storage => {
  const blobs = new Map<string, Blob>()
  let version = 0
  let usedBytes = 0

  const checked = (key: string): Effect.Effect<void, PortError> =>
    isBlobKey(key)
      ? Effect.void
      : Effect.fail(
          new PortError({ port: "storage", message: `${JSON.stringify(key)} is not a blob key.` }),
        )

  const find = (key: string) =>
    Effect.gen(function* () {
      yield* checked(key)
      return blobs.get(key) ?? (yield* Effect.fail(new BlobMissing({ key })))
    })

  const remove = (key: string): void => {
    usedBytes -= blobs.get(key)?.info.bytes ?? 0
    blobs.delete(key)
  }

  // nothing is visible before the whole body is here
  const put: Storage["put"] = (key, body, maxBytes) =>
    Effect.gen(function* () {
      yield* checked(key)
      const chunks: Uint8Array[] = []
      let bytes = 0
      yield* Stream.runForEach(body, (chunk): Effect.Effect<void, StorageError> => {
        bytes += chunk.byteLength
        if (bytes > maxBytes) return Effect.fail(new BlobTooLarge({ key, maxBytes }))
        if (usedBytes + bytes > capacityBytes) return Effect.fail(new StorageFull({ key }))
        return Effect.sync(() => void chunks.push(chunk))
      })
      remove(key)
      usedBytes += bytes
      const info = { key, bytes, etag: String(++version) }
      blobs.set(key, { info, bytes: new Uint8Array(Buffer.concat(chunks)) })
      return info
    })

  return {
    put,
    get: (key, { from, to = Number.POSITIVE_INFINITY } = { from: 0 }) =>
      Stream.unwrap(
        Effect.map(find(key), ({ bytes }) =>
          from <= to && from < bytes.byteLength
            ? Stream.make(bytes.slice(from, to + 1))
            : Stream.empty,
        ),
      ),
    stat: (key) => Effect.map(find(key), ({ info }) => info),
    remove: (key) => Effect.map(checked(key), () => remove(key)),
    list: (prefix) =>
      Stream.suspend(() => {
        const keys = [...blobs.keys()].filter((key) => key.startsWith(prefix)).sort()
        return Stream.fromIterable(keys.map((key) => blobs.get(key)!.info))
      }),
  }
}
