import { Effect } from "effect"
import { fakeStorage } from "./storage.ts"
import { storageContract } from "./storage-contract.ts"

storageContract(
  "in memory",
  Effect.sync(() => ({ storage: fakeStorage(), nearlyFull: fakeStorage(2 ** 20) })),
)
