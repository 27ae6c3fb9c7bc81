import { PortError } from "../../core/errors.ts"
import { BlobMissing, StorageFull } from "../../core/ports/storage.ts"

export const codeOf = (cause: unknown): string | undefined =>
  typeof cause === "object" && cause !== null && "code" in cause && typeof cause.code === "string"
    ? cause.code
    : undefined

/** What vanished between one look and the next is not there. */
export const ifThere = async <A>(look: Promise<A>): Promise<A | undefined> =>
  look.catch((cause) => {
    if (codeOf(cause) === "ENOENT") return undefined
    throw cause
  })

const noRoom = new Set(["ENOSPC", "EDQUOT"])

/** A failed write or removal. What is missing then is not the blob but our own folder, so ENOENT is no `BlobMissing`. */
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

/** A failed look at one blob. */
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
