import { Effect } from "effect"
import { storageContract } from "../contracts/storage.ts"
import { fakeStorage } from "./storage.ts"

storageContract(
  "in memory",
  Effect.sync(() => ({ storage: fakeStorage(), nearlyFull: fakeStorage(2 ** 20) })),
)
