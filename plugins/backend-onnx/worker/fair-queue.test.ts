import { expect, test } from "vitest"
import { FairQueue, type QueueEntry } from "./fair-queue.ts"

const none = () => 0
let ids = 0
const entryOf = (account: string): QueueEntry => ({ id: ++ids, account, priority: "realtime" })

test("an account whose next request comes when its last one is taken does not starve others", () => {
  const queue = new FairQueue<QueueEntry>()
  for (let i = 0; i < 4; i++) queue.push(entryOf("backlog"))
  queue.push(entryOf("steady"))
  const served: string[] = []
  for (let i = 0; i < 6; i++) {
    const entry = queue.next("realtime", none)!
    queue.take(entry)
    served.push(entry.account)
    if (entry.account === "steady") queue.push(entryOf("steady"))
  }
  expect(served).toEqual(["backlog", "steady", "backlog", "steady", "backlog", "steady"])
})

test("accounts with fewer running requests come first, and those that never had a turn before others", () => {
  const queue = new FairQueue<QueueEntry>()
  for (const account of ["a", "b", "b"]) queue.push(entryOf(account))
  expect(queue.next("realtime", (account) => (account === "a" ? 1 : 0))?.account).toBe("b")
  queue.take(queue.next("realtime", none)!)
  queue.push(entryOf("c"))
  const order = []
  for (let entry = queue.next("realtime", none); entry; entry = queue.next("realtime", none)) {
    queue.take(entry)
    order.push(entry.account)
  }
  expect(order).toEqual(["b", "c", "b"])
})
