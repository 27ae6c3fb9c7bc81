import { S3Client, type S3ClientConfig } from "@aws-sdk/client-s3"
import { Redacted } from "effect"
import { type ObjectKeys, objectKeys } from "./object-key.ts"
import { makeRetryBudget, type RetryBudget, retryStrategy } from "./retry-budget.ts"
import { errorsOf, type StoreErrors } from "./s3-errors.ts"
import type { StorageS3Settings } from "./settings.ts"

/** A bucket, as the modules of this plugin use it. */
export interface Store {
  readonly client: S3Client
  readonly bucket: string
  /** For people: the bucket and where it is. */
  readonly name: string
  readonly keys: ObjectKeys
  readonly errors: StoreErrors
  readonly budget: RetryBudget
  readonly settings: StorageS3Settings
  /** Joins every write. */
  readonly writing: {
    readonly ServerSideEncryption?: "AES256" | "aws:kms"
    readonly StorageClass?: "STANDARD"
  }
}

const connectMs = 5_000
const maxSockets = 256

const credentialsOf = ({ accessKeyId, secretAccessKey }: StorageS3Settings): S3ClientConfig =>
  accessKeyId === "" && Redacted.value(secretAccessKey) === ""
    ? {}
    : { credentials: { accessKeyId, secretAccessKey: Redacted.value(secretAccessKey) } }

const writingOf = ({
  serverSideEncryption,
  storageClass,
}: StorageS3Settings): Store["writing"] => ({
  // the store judges the names: stores have their own
  ...(serverSideEncryption !== "" && { ServerSideEncryption: serverSideEncryption as "AES256" }),
  ...(storageClass !== "" && { StorageClass: storageClass as "STANDARD" }),
})

/** Opens no connection. `more` is for tests. */
export const openStore = (settings: StorageS3Settings, more: S3ClientConfig = {}): Store => {
  const { endpoint, region, bucket, pathStyle, attempts, timeoutMs } = settings
  const budget = makeRetryBudget(settings.retryBudget)
  const client = new S3Client({
    region: region === "" ? "us-east-1" : region,
    ...(endpoint !== "" && { endpoint }),
    ...credentialsOf(settings),
    forcePathStyle: pathStyle,
    retryStrategy: retryStrategy(attempts, budget),
    requestHandler: {
      connectionTimeout: Math.min(connectMs, timeoutMs),
      requestTimeout: timeoutMs,
      throwOnRequestTimeout: true,
      socketTimeout: timeoutMs,
      httpAgent: { keepAlive: true, maxSockets },
      httpsAgent: { keepAlive: true, maxSockets },
    },
    ...more,
  })
  const name = `the bucket "${bucket}" at ${endpoint === "" ? `AWS (${region})` : endpoint}`
  return {
    client,
    bucket,
    name,
    keys: objectKeys(settings.prefix),
    errors: errorsOf(name),
    budget,
    settings,
    writing: writingOf(settings),
  }
}
