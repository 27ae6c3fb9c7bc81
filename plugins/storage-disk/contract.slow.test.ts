import { tmpdir } from "node:os"
import { Effect } from "effect"
import { storageContract } from "../../testing/contracts/storage.ts"
import { freshStorage } from "./testing/storage.ts"

storageContract(
  "on disk",
  Effect.map(freshStorage(tmpdir()), (storage) => ({ storage })),
)
