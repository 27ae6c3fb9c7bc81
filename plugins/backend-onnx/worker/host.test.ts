import { EventEmitter } from "node:events"
import { Effect, Exit, Layer, Scope } from "effect"
import { TestClock } from "effect/testing"
import { expect, test } from "vitest"
import type { EngineChannel } from "../../../core/ports/execution-provider.ts"
import { fakeLog } from "../../../testing/index.ts"
import { startEngine } from "./host.ts"
import type { EngineSpec } from "./protocol.ts"

/** A thread that opens its model at once. */
class OpenAtOnce extends EventEmitter implements EngineChannel {
  constructor() {
    super()
    setImmediate(() => this.emit("message", [{ type: "ready", info: {} }]))
  }
  postMessage({ type }: { readonly type: string }): void {
    if (type === "close") this.emit("exit", 0)
  }
}

const turns = async (count: number) => {
  for (let i = 0; i < count; i++) await new Promise((resolve) => setImmediate(resolve))
}

/** Opens an engine, whose thread then dies after each of the times; returns the errors in the log. */
const errorsWhenDyingAfter = async (timesMs: readonly number[]): Promise<readonly string[]> => {
  const [threads, log, scope] = [[] as OpenAtOnce[], fakeLog(), Scope.makeUnsafe()]
  const clock = await Effect.runPromise(Layer.build(TestClock.layer()).pipe(Scope.provide(scope)))
  const run = Effect.runPromiseWith(clock)
  const start = () => {
    threads.push(new OpenAtOnce())
    return threads.at(-1)!
  }
  const options = { queue: 1, log, placement: { start, servedBy: () => "test" }, progress() {} }
  const spec = { kind: "decoder", path: "model", slots: 1 } as EngineSpec
  await run(startEngine({ ...options, spec }).pipe(Scope.provide(scope)))
  for (const ms of timesMs) {
    await turns(5)
    await run(TestClock.adjust(ms))
    threads.at(-1)!.emit("exit", 1)
    await turns(5)
    await run(TestClock.adjust("10 seconds"))
  }
  await turns(5)
  await run(Scope.close(scope, Exit.void))
  return log.lines.filter(({ level }) => level === "error").map(({ message }) => message)
}

const died = "an engine's thread ended"
const givenUp = "an engine is given up, because its thread ended too often"

test("six deaths in a row give an engine up; those of threads that ran for long don't count", async () => {
  const often = Array.from({ length: 6 }, () => 60_000)
  expect(await errorsWhenDyingAfter(often)).toEqual([...often.map(() => died), givenUp])
  const rarely = Array.from({ length: 20 }, () => 600_000)
  expect(await errorsWhenDyingAfter(rarely)).toEqual(rarely.map(() => died))
})
