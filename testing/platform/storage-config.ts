import { randomUUID } from "node:crypto"
import { readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import type { S3Server } from "../s3-server.ts"

const root = fileURLToPath(new URL("../..", import.meta.url))

/** config/test.yaml with another storage, in `folder`. Returns the path of the file. */
export const writeStorageConfig = (
  folder: string,
  plugin: string,
  settings: Readonly<Record<string, unknown>> = {},
): string => {
  const text = readFileSync(join(root, "config/test.yaml"), "utf8")
    .replace("../testing/fakes/backend.ts", join(root, "testing/fakes/backend.ts"))
    .replace("storage-disk: {}", `${plugin}: ${JSON.stringify(settings)}`)
  const file = join(folder, `${plugin}-${randomUUID()}.yaml`)
  writeFileSync(file, text)
  return file
}

/** The settings of a new, empty bucket. */
export const newBucket = (server: S3Server) => {
  const bucket = `b-${randomUUID()}`
  server.makeBucket(bucket)
  const { endpoint, accessKeyId, secretAccessKey } = server
  return { endpoint, bucket, accessKeyId, secretAccessKey, pathStyle: true }
}
