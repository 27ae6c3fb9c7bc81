import { existsSync } from "node:fs"
import { tmpdir } from "node:os"
import { Effect } from "effect"
import { storageContract } from "../../testing/contracts/storage.ts"
import { mountSmallDisk } from "../../testing/small-disk.ts"
import { freshStorage } from "./testing/storage.ts"

// on a file system where syncing costs nothing; contract.slow.test.ts does the same on a real disk
const memory = existsSync("/dev/shm") ? "/dev/shm" : tmpdir()
const smallDisk = mountSmallDisk()

storageContract(
  "in a folder in memory",
  Effect.gen(function* () {
    const storage = yield* freshStorage(memory)
    return smallDisk === undefined
      ? { storage }
      : { storage, nearlyFull: yield* freshStorage(smallDisk) }
  }),
)
