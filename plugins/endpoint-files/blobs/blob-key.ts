import type { Ids, Tenant } from "../../../core/index.ts"

/** The keys of this plugin's blobs, and no others, begin so. */
export const blobPrefix = "files/"

/** The last segment is a UUIDv7, so that the key of an orphan shows its age. */
export const makeBlobKey = (ids: Ids, { account, mode }: Tenant): string =>
  `${blobPrefix}${mode}/${account}/${ids.call()}`

export const isBlobOf = ({ account, mode }: Tenant, key: string): boolean =>
  key.startsWith(`${blobPrefix}${mode}/${account}/`)

/** Returns when the key was made, in Unix ms; undefined when it has another form. */
export const createdMsOf = (key: string): number | undefined => {
  const [, high, low] =
    /\/([0-9a-f]{8})-([0-9a-f]{4})-7[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}$/.exec(key) ?? []
  return high === undefined || low === undefined ? undefined : Number.parseInt(high + low, 16)
}
