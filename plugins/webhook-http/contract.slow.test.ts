import { runContract } from "./test-contract.ts"

runContract(100)
