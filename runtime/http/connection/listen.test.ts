import { once } from "node:events"
import { type AddressInfo, createServer } from "node:net"
import { Effect } from "effect"
import { expect, test, vi } from "vitest"
import { fakeLog } from "../../../testing/fakes/log.ts"
import { defaultHttpTimings } from "../timings.ts"
import { untilPortFree } from "./listen.ts"

const untilFree = (port: number, log = fakeLog()) =>
  Effect.runPromise(untilPortFree("127.0.0.1", port, defaultHttpTimings, log))

test("a port that another process has is waited for, and that is said once", async () => {
  const other = createServer().listen(0, "127.0.0.1")
  await once(other, "listening")
  const { port } = other.address() as AddressInfo
  const log = fakeLog()
  const waiting = untilFree(port, log)
  await vi.waitUntil(() => log.lines.length > 0)
  other.close()
  await waiting
  expect(log.lines).toMatchObject([{ event: "http.port_in_use", fields: { port, seconds: 10 } }])
  await untilFree(port, log)
  expect(log.lines).toHaveLength(1)
})
