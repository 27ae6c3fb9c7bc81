import { tmpdir } from "node:os"
import { Effect } from "effect"
import { storageContract } from "../../core/testing/storage-contract.ts"
import { freshStorage } from "./test-storage.ts"

storageContract(
  "on disk",
  Effect.map(freshStorage(tmpdir()), (storage) => ({ storage })),
)
