import {
  AbortMultipartUploadCommand,
  ListMultipartUploadsCommand,
  type ListMultipartUploadsCommandOutput,
} from "@aws-sdk/client-s3"
import type { Store } from "./store.ts"

/** Longer than any put takes. */
export const unfinishedMs = 24 * 3_600_000

/**
 * Aborts uploads in parts that began before `beforeMs`: their process died, and their parts cost
 * money for ever. Returns how many.
 */
export const sweepUploads = async (store: Store, beforeMs: number): Promise<number> => {
  const { client, bucket, keys } = store
  let swept = 0
  let marker: { readonly KeyMarker?: string; readonly UploadIdMarker?: string } | undefined = {}
  while (marker !== undefined) {
    const page: ListMultipartUploadsCommandOutput = await client.send(
      new ListMultipartUploadsCommand({
        Bucket: bucket,
        Prefix: keys.ofPrefix("") ?? "",
        ...marker,
      }),
    )
    for (const { Key, UploadId, Initiated } of page.Uploads ?? []) {
      const isOurs = Key !== undefined && keys.keyOf(Key) !== undefined
      if (!isOurs || Initiated === undefined || Initiated.getTime() >= beforeMs) continue
      await client.send(new AbortMultipartUploadCommand({ Bucket: bucket, Key, UploadId }))
      swept += 1
    }
    const isMarked = page.NextKeyMarker !== undefined || page.NextUploadIdMarker !== undefined
    // a store that names no next page would give the first one for ever
    marker =
      page.IsTruncated && isMarked
        ? {
            ...(page.NextKeyMarker !== undefined && { KeyMarker: page.NextKeyMarker }),
            ...(page.NextUploadIdMarker !== undefined && {
              UploadIdMarker: page.NextUploadIdMarker,
            }),
          }
        : undefined
  }
  return swept
}
