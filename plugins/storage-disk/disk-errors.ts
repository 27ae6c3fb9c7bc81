import { PortError } from "../../core/errors.ts"
import { BlobMissing, StorageFull } from "../../core/ports/storage.ts"

export const codeOf = (cause: unknown): string | undefined =>
  typeof cause === "object" && cause !== null && "code" in cause && typeof cause.code === "string"
    ? cause.code
    : undefined

/** Returns undefined for ENOENT: a file may vanish between two calls. */
export const ifThere = async <A>(work: Promise<A>): Promise<A | undefined> =>
  work.catch((cause) => {
    if (codeOf(cause) === "ENOENT") return undefined
    throw cause
  })

const noRoom = new Set(["ENOSPC", "EDQUOT"])

/**
 * Maps a failed write or removal. ENOENT means that the adapter's own folder is missing, so it is
 * no `BlobMissing`.
 */
export const writeError =
  (key: string) =>
  (cause: unknown): StorageFull | PortError =>
    noRoom.has(codeOf(cause) ?? "")
      ? new StorageFull({ key })
      : new PortError({
          port: "storage",
          message: `"${key}" could not be changed: ${String(cause)}`,
          cause,
        })

/** Maps a failed read of a blob. */
export const readError =
  (key: string) =>
  (cause: unknown): BlobMissing | PortError =>
    codeOf(cause) === "ENOENT"
      ? new BlobMissing({ key })
      : new PortError({
          port: "storage",
          message: `"${key}" could not be read: ${String(cause)}`,
          cause,
        })

export const badKey = (key: string): PortError =>
  new PortError({ port: "storage", message: `${JSON.stringify(key.slice(0, 80))} is no blob key.` })
