import { runContract } from "./testing/contract.ts"

runContract(100)
