import { Effect, Stream } from "effect"
import type { BlobInfo, Storage } from "../../../core/ports/storage.ts"

/** A limit that no case reaches. */
export const roomy = 64 * 2 ** 20

export const textBody = (...chunks: readonly string[]): Stream.Stream<Uint8Array> =>
  Stream.fromIterable(chunks).pipe(Stream.map((chunk) => new TextEncoder().encode(chunk)))

export const putText = (storage: Storage, key: string, ...chunks: readonly string[]) =>
  storage.put(key, textBody(...chunks), roomy)

export const getBytes = (
  storage: Storage,
  key: string,
  range?: { readonly from: number; readonly to?: number },
) => Effect.map(Stream.runCollect(storage.get(key, range)), (chunks) => Buffer.concat([...chunks]))

export const getText = (
  storage: Storage,
  key: string,
  range?: { readonly from: number; readonly to?: number },
) => Effect.map(getBytes(storage, key, range), (bytes) => bytes.toString())

export const listAll = (storage: Storage, prefix = "") =>
  Effect.map(Stream.runCollect(storage.list(prefix)), (infos): readonly BlobInfo[] => [...infos])

export const listKeys = (storage: Storage, prefix = "") =>
  Effect.map(listAll(storage, prefix), (infos) => infos.map(({ key }) => key))
