import { Effect, Exit, Schema, Stream } from "effect"
import { describe, expect, it } from "vitest"
import type { Backend, OpenRequest } from "../../core/index.ts"
import { fakeStorage } from "../../testing/fakes/storage.ts"
import { backendWithFaults, checkWithFaults, type Injection, withFaults } from "./inject.ts"
import { makeScript } from "./script.ts"
import { Fault } from "./settings.ts"

const over = (...faults: object[]) => {
  const seen: string[] = []
  const decoded = faults.map((fault) =>
    Schema.decodeUnknownSync(Fault)({ port: "storage", ...fault }),
  )
  let exits = 0
  const injection: Injection = {
    next: makeScript(decoded, 1),
    injected: (port, operation, { fault }) => void seen.push(`${port} ${operation} ${fault}`),
    exit: () => void exits++,
  }
  return { storage: withFaults(fakeStorage(), "storage", injection), seen, exits: () => exits }
}
const body = Stream.make(Buffer.from("ab"), Buffer.from("cd"))
const put = (storage: ReturnType<typeof fakeStorage>) =>
  Effect.runPromiseExit(storage.put("a", body, 9))
const get = (storage: ReturnType<typeof fakeStorage>) =>
  Effect.runPromiseExit(Stream.runCollect(storage.get("a")))

describe("a port with faults", () => {
  it("is itself where none is due", async () => {
    const { storage, seen } = over({ fault: "fail", operation: "remove" })
    await put(storage)
    expect(Exit.isSuccess(await get(storage))).toBe(true)
    expect(seen).toEqual([])
  })

  it.each([
    ["full", /StorageFull/],
    ["fail", /injected.*PortError/s],
    ["disconnect", /unavailable/],
    ["crash", /"Die"/],
  ])("%s", async (fault, expected) => {
    const { storage, seen } = over({ fault, operation: "put", times: 1 })
    expect(JSON.stringify(await put(storage))).toMatch(expected)
    expect(seen).toEqual([`storage put ${fault}`])
    expect(Exit.isSuccess(await put(storage))).toBe(true)
  })

  it("cuts a stream after some of its items, and slows it", async () => {
    const { storage } = over({ fault: "fail", operation: "get", items: 1, times: 1 })
    await put(storage)
    const items: unknown[] = []
    await Effect.runPromiseExit(
      Stream.runForEach(storage.get("a"), (item) => Effect.sync(() => items.push(item))),
    )
    expect(items.length).toBeLessThanOrEqual(1)
    const slow = over({ fault: "slow", operation: "put", delayMs: 30 }).storage
    const began = performance.now()
    await put(slow)
    expect(performance.now() - began).toBeGreaterThan(25)
  })

  it("decides when the operation runs, not when it is made", async () => {
    const { storage, seen } = over({ fault: "fail", operation: "remove", times: 1 })
    const remove = storage.remove("a")
    expect(seen).toEqual([])
    const [first, second] = [
      await Effect.runPromiseExit(remove),
      await Effect.runPromiseExit(remove),
    ]
    expect([Exit.isFailure(first), Exit.isSuccess(second)]).toEqual([true, true])
  })

  it("leaves to a model what it says anew each time", async () => {
    let now = "well"
    const loaded = {
      get servedAt() {
        return now
      },
      task: {},
    }
    const backend = { name: "b", open: () => Effect.succeed(loaded) } as unknown as Backend
    const injection: Injection = { next: () => undefined, injected: () => {}, exit: () => {} }
    const model = await Effect.runPromise(
      Effect.scoped(backendWithFaults(backend, injection).open({} as OpenRequest)),
    )
    now = "gone"
    expect(model.servedAt).toBe("gone")
  })

  it("fails a check of /readyz by its name", async () => {
    const fault = { port: "health", operation: "storage", fault: "fail", times: 1 }
    const injection: Injection = {
      next: makeScript([Schema.decodeUnknownSync(Fault)(fault)], 1),
      injected: () => {},
      exit: () => {},
    }
    const [storage, database] = ["storage", "database"].map(
      (name) => checkWithFaults({ name, check: Effect.void }, injection).check,
    )
    await Effect.runPromise(database!)
    expect(await Effect.runPromise(Effect.flip(storage!))).toContain("injected")
    await Effect.runPromise(storage!)
  })

  it("ends the process where the fault says so", async () => {
    const { storage, exits } = over({ fault: "exit", operation: "put" })
    await put(storage)
    expect(exits()).toBe(1)
  })
})
