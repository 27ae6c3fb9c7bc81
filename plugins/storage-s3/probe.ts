import {
  DeleteObjectCommand,
  HeadBucketCommand,
  ListObjectsV2Command,
  PutObjectCommand,
} from "@aws-sdk/client-s3"
import { Effect } from "effect"
import { PluginError } from "../../core/errors.ts"
import type { HealthCheck } from "../../core/ports/health.ts"
import type { Log } from "../../core/services/log.ts"
import { explain, isFull, isMissing } from "./s3-errors.ts"
import type { Store } from "./store.ts"

const answerWithin = "5 seconds"
/** Stores refuse requests that differ by 15 minutes. */
const skewMs = 5 * 60_000

/** Reads a page of one key: unlike that to HEAD, the answer says what is wrong. */
const look = (store: Store, abortSignal?: AbortSignal) =>
  store.client.send(
    new ListObjectsV2Command({
      Bucket: store.bucket,
      Prefix: store.keys.ofPrefix("") ?? "",
      MaxKeys: 1,
    }),
    abortSignal && { abortSignal },
  )

/** No blob has this object: keys end otherwise. */
const probeOf = (store: Store) => ({
  Bucket: store.bucket,
  Key: `${store.keys.ofPrefix("")}.rakit-probe`,
})

const write = async (store: Store, log: Log): Promise<void> => {
  try {
    await store.client.send(
      new PutObjectCommand({ ...probeOf(store), ...store.writing, Body: new Uint8Array(1) }),
    )
  } catch (cause) {
    // what is there can be read, and deleting it makes room
    if (!isFull(cause)) throw cause
    log.warn("bucket.full", "The store is full; nothing can be stored", { store: store.name })
    return
  }
  await store.client.send(new DeleteObjectCommand(probeOf(store)))
}

/** Says so where the clocks differ; the client corrects its signatures, but limits and bills don't. */
const compareClocks = async (store: Store, log: Log): Promise<void> => {
  const offsetMs = store.client.config.systemClockOffset
  if (Math.abs(offsetMs) < skewMs) return
  log.warn(
    "storage.clock_skew",
    "The clocks of this machine and of the store differ. Signatures are corrected, limits and bills are not: set both by NTP",
    { store: store.name, ahead_by_s: -Math.round(offsetMs / 1000) },
  )
}

/** Fails where the bucket can't be listed, written and deleted from. */
export const checkStore = (store: Store, log: Log): Effect.Effect<void, PluginError> =>
  Effect.tryPromise({
    try: async () => {
      await look(store)
      await write(store, log)
      await compareClocks(store, log)
    },
    catch: (cause) =>
      new PluginError({ plugin: "storage-s3", message: explain(store.name, cause) }),
  })

/** What `/readyz` says. Asks once: who asks for readiness asks again. */
export const makeCheck = (store: Store, log: Log): HealthCheck => {
  let wasSkewed = false
  return {
    name: "storage",
    check: Effect.tryPromise({
      try: async (signal) => {
        await look(store, signal)
        const isSkewed = Math.abs(store.client.config.systemClockOffset) >= skewMs
        if (isSkewed && !wasSkewed) await compareClocks(store, log)
        wasSkewed = isSkewed
      },
      catch: (cause) => explain(store.name, cause),
    }).pipe(
      Effect.timeoutOrElse({
        duration: answerWithin,
        orElse: () => Effect.fail(`${store.name}: no answer in 5 s`),
      }),
    ),
  }
}

/** HEAD of a blob says "not found" of a lost bucket, too. */
export const mustHaveBucket = (store: Store): Promise<unknown> =>
  store.client.send(new HeadBucketCommand({ Bucket: store.bucket })).catch((cause) => {
    throw isMissing(cause) ? Object.assign(cause, { name: "NoSuchBucket" }) : cause
  })
