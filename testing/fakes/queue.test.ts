import { Effect } from "effect"
import { queueContract } from "../contracts/queue.ts"
import { fakeQueue } from "./queue.ts"
import { fakeTransaction } from "./transaction.ts"

queueContract(
  "in memory",
  Effect.sync(() => {
    const queue = fakeQueue()
    return {
      queue,
      other: queue.other,
      cutOff: Effect.sync(() => queue.cutOff()),
      advance: queue.advance,
      deadLetters: Effect.sync(() => queue.dead.map(({ job }) => job)),
      transaction: fakeTransaction,
    }
  }),
)
