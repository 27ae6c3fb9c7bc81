import { GetObjectCommand, S3Client } from "@aws-sdk/client-s3"
import { getSignedUrl } from "@aws-sdk/s3-request-presigner"
import { Effect } from "effect"
import { isBlobKey, type Storage } from "../../core/ports/storage.ts"
import { systemClock } from "../../core/services/clock.ts"
import { badKey } from "./s3-errors.ts"
import type { Store } from "./store.ts"

/** Signs under the host that customers reach, which the server may not. Sends nothing. */
const signerOf = ({ client, settings }: Store): S3Client =>
  settings.presignEndpoint === ""
    ? client
    : new S3Client({
        region: client.config.region,
        credentials: client.config.credentials,
        forcePathStyle: settings.pathStyle,
        endpoint: settings.presignEndpoint,
      })

/** Links to blobs; the store does not ask for a key, so callers have checked who may read them. */
export const makeLink = (store: Store): NonNullable<Storage["link"]> => {
  const signer = signerOf(store)
  return (key, { mediaType, disposition }) =>
    isBlobKey(key)
      ? Effect.tryPromise({
          try: () =>
            getSignedUrl(
              signer,
              new GetObjectCommand({
                Bucket: store.bucket,
                Key: store.keys.of(key),
                ResponseContentType: mediaType,
                ResponseContentDisposition: disposition,
                ResponseCacheControl: "private, no-store",
              }),
              {
                expiresIn: store.settings.presignSeconds,
                // by the store's clock
                signingDate: new Date(systemClock.nowMs() + store.client.config.systemClockOffset),
              },
            ),
          catch: store.errors.asking(key),
        })
      : Effect.fail(badKey(key))
}
