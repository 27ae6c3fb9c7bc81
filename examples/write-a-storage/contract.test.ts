import { Effect } from "effect"
import { storageContract } from "rakit/testing"
import { makeMemoryStorage } from "./memory-storage.ts"

storageContract(
  "storage-memory",
  Effect.sync(() => ({
    storage: makeMemoryStorage(2 ** 30),
    nearlyFull: makeMemoryStorage(2 ** 20),
  })),
)
