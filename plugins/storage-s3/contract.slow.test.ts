import { Effect } from "effect"
import { afterAll, describe, vi } from "vitest"
import { storageContract } from "../../testing/contracts/storage.ts"
import { noS3Server, startS3Server } from "../../testing/s3-server.ts"
import { mountSmallDisk } from "../../testing/small-disk.ts"
import { makeS3Storage } from "./s3-storage.ts"
import { freshStore } from "./testing/store.ts"

// hundreds of requests to one process, on machines that are busy
vi.setConfig({ testTimeout: 90_000 })

describe.skipIf(noS3Server() !== undefined)("on an S3 server", async () => {
  if (noS3Server() !== undefined) return
  const server = await startS3Server()
  const smallDisk = mountSmallDisk()
  const small = smallDisk === undefined ? undefined : await startS3Server({ folder: smallDisk })
  afterAll(() => Promise.all([server.close(), small?.close()]))

  const open = (prefix: string) =>
    Effect.sync(() => ({
      storage: makeS3Storage(freshStore(server, { prefix })),
      ...(small && { nearlyFull: makeS3Storage(freshStore(small, { prefix })) }),
    }))
  storageContract("in a folder of a bucket", open("tenants/one/"))
})
