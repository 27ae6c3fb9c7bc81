import { vectorFixture } from "../testing/vector-fixture.ts"
import { vectorStoreContract } from "../testing/vector-store-contract.ts"
import { openScanStore } from "./scan-store.ts"

vectorStoreContract("the exact scan", () => vectorFixture(openScanStore))
// memory for a few accounts of one page, so that most are given up, or read for each search
vectorStoreContract("the exact scan without memory", () =>
  vectorFixture(openScanStore, { cacheMb: 2 / 16 }),
)
