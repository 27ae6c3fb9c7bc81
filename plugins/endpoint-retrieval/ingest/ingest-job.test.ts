import { Effect, Exit, Scope, Stream } from "effect"
import { expect, it } from "vitest"
import { PortError } from "../../../core/index.ts"
import type { FakeQueue } from "../../../testing/index.ts"
import { lines, useIngest } from "../testing/use-ingest.ts"
import { ingestHandler } from "./ingest-job.ts"

const ingest = useIngest()

it("the first file of an account passes the twentieth of another", async () => {
  await ingest.open()
  const { test } = ingest
  ingest.test.identity.add({ key: "svc_live_2", keyId: "key_2", account: "acct_2" })
  const many = []
  for (let n = 0; n < 20; n++) many.push(await test.upload(lines(1)))
  const tenant = { account: "acct_2", mode: "live" } as const
  const one = await test.upload(lines(1), { tenant, keyId: "key_2" })
  const queue = test.deps.queue as FakeQueue
  const order: string[] = []
  const handler = ingestHandler(Effect.succeed(test.deps), { ingestsAtOnce: 1, leaseMs: 60_000 })
  const scope = Scope.makeUnsafe()
  await Effect.runPromise(
    queue
      .consume({ ...handler, run: ({ file }) => Effect.sync(() => void order.push(file)) })
      .pipe(Scope.provide(scope)),
  )
  await Effect.runPromise(queue.advance(0))
  await Effect.runPromise(Scope.close(scope, Exit.void))
  expect([order.length, order[0], order.indexOf(one)]).toEqual([21, many[0], 1])
})

it("a file that is deleted while it is read is no failure", async () => {
  await ingest.open()
  const id = await ingest.test.upload(lines(1))
  const read = Effect.promise(async () => {
    await ingest.remove(id)
    return Stream.fail(new PortError({ port: "files", message: "the file can't be read" }))
  })
  Object.assign(ingest.test.deps, { reader: { read: () => Stream.unwrap(read) } })
  await ingest.run(id)
  expect(ingest.test.log.lines.filter(({ level }) => level === "warn")).toEqual([])
})
