import { setImmediate } from "node:timers/promises"
import { expect, test } from "vitest"
import { Outbox } from "./outbox.ts"

const opened = () => {
  const posts: (readonly string[])[] = []
  return { posts, outbox: new Outbox<string>((messages) => void posts.push(messages)) }
}

test("what is sent in one turn, also after promises, is posted as one, in order", async () => {
  const { posts, outbox } = opened()
  outbox.send("a")
  void Promise.resolve()
    .then(() => outbox.append("b"))
    .then(() => outbox.send("c"))
  expect(posts).toEqual([])
  await setImmediate()
  outbox.send("d")
  await setImmediate()
  expect(posts).toEqual([["a", "b", "c"], ["d"]])
})

test("what is appended waits for the next that is sent", async () => {
  const { posts, outbox } = opened()
  outbox.append("a")
  await setImmediate()
  expect(posts).toEqual([])
  outbox.send("b")
  await setImmediate()
  expect(posts).toEqual([["a", "b"]])
})
