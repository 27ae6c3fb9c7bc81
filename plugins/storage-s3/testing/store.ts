import { randomUUID } from "node:crypto"
import type { S3ClientConfig } from "@aws-sdk/client-s3"
import { Schema } from "effect"
import type { S3Server } from "../../../testing/s3-server.ts"
import { StorageS3Settings } from "../settings.ts"
import { openStore, type Store } from "../store.ts"

type Given = Partial<(typeof StorageS3Settings)["Encoded"]>

export const settingsFor = (server: S3Server, bucket: string, more: Given = {}) =>
  Schema.decodeUnknownSync(StorageS3Settings)({
    endpoint: server.endpoint,
    bucket,
    accessKeyId: server.accessKeyId,
    secretAccessKey: server.secretAccessKey,
    pathStyle: true,
    ...more,
  })

/** A new, empty bucket. */
export const freshStore = (server: S3Server, more: Given = {}, client?: S3ClientConfig): Store => {
  const bucket = `b-${randomUUID()}`
  server.makeBucket(bucket)
  return openStore(settingsFor(server, bucket, more), client)
}
