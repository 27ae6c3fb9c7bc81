import type { Ids, Tenant } from "../../../core/index.ts"

/** All blobs of this plugin, and nobody else's. */
export const blobPrefix = "files/"

/** The last segment is a UUIDv7, so that a blob that nobody names shows its age. */
export const makeBlobKey = (ids: Ids, { account, mode }: Tenant): string =>
  `${blobPrefix}${mode}/${account}/${ids.call()}`

export const isBlobOf = ({ account, mode }: Tenant, key: string): boolean =>
  key.startsWith(`${blobPrefix}${mode}/${account}/`)

/** When the key was made; undefined when it is none of ours. */
export const madeMs = (key: string): number | undefined => {
  const [, high, low] =
    /\/([0-9a-f]{8})-([0-9a-f]{4})-7[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}$/.exec(key) ?? []
  return high === undefined || low === undefined ? undefined : Number.parseInt(high + low, 16)
}
