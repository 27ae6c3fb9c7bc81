import { ListObjectsV2Command } from "@aws-sdk/client-s3"
import type { BlobInfo } from "../../core/ports/storage.ts"
import type { Store } from "./store.ts"

/** Stores quote etags. */
export const etagOf = (etag: string | undefined): string => (etag ?? "").replace(/^"|"$/g, "")

/** Names of others may hold what XML can't, so the store is asked to encode them. */
const decoded = (name: string): string => {
  try {
    return decodeURIComponent(name.replace(/\+/g, " "))
  } catch {
    return name
  }
}

/** Asks for a page of 1,000 when the last one has been read. */
export async function* listBlobs(store: Store, prefix: string): AsyncGenerator<BlobInfo> {
  const Prefix = store.keys.ofPrefix(prefix)
  if (Prefix === undefined) return
  let token: string | undefined
  do {
    const page = await store.client.send(
      new ListObjectsV2Command({
        Bucket: store.bucket,
        Prefix,
        EncodingType: "url",
        ...(token !== undefined && { ContinuationToken: token }),
      }),
    )
    for (const { Key = "", Size = 0, ETag } of page.Contents ?? []) {
      const key = store.keys.keyOf(decoded(Key))
      if (key !== undefined) yield { key, bytes: Size, etag: etagOf(ETag) }
    }
    token = page.IsTruncated ? page.NextContinuationToken : undefined
  } while (token !== undefined)
}
