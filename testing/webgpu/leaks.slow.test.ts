import { readdirSync, readFileSync } from "node:fs"
import { setFlagsFromString } from "node:v8"
import { runInNewContext } from "node:vm"
import { Effect, Scope, Stream } from "effect"
import { describe, expect, test, vi } from "vitest"
import { encoderFolder } from "../../plugins/backend-onnx/testing/fixtures.ts"
import { context, failureOf, openBackend } from "../../plugins/backend-onnx/testing/open-backend.ts"
import { noDevice, testProvider } from "./test-device.ts"

const kills = Number(process.env.RAKIT_TEST_KILLS ?? 100)

vi.setConfig({ testTimeout: 60_000 + kills * 20_000 })

setFlagsFromString("--expose-gc")
const collectGarbage = runInNewContext("gc") as () => void

const childrenOf = (pid: number): readonly string[] =>
  readdirSync(`/proc/${pid}/task`).flatMap((task) =>
    readFileSync(`/proc/${pid}/task/${task}/children`, "utf8").split(" ").filter(Boolean),
  )

/** What this process holds. */
const held = () => {
  collectGarbage()
  return {
    files: readdirSync("/proc/self/fd").length,
    children: childrenOf(process.pid).length,
    exitListeners: process.listenerCount("exit"),
    heapMb: process.memoryUsage().heapUsed / 2 ** 20,
  }
}

const until = (holds: () => boolean) => vi.waitUntil(holds, { timeout: 60_000, interval: 20 })

const skipped = noDevice ?? (process.platform === "linux" ? undefined : "needs /proc")

describe.skipIf(skipped)("a device's process that is killed again and again", () => {
  test("leaves nothing behind: neither when it is started again, nor when the CPU takes over", async () => {
    const killTwice = async () => {
      const { provider, device } = testProvider()
      const own = openBackend({}, provider)
      const scope = Scope.makeUnsafe()
      const model = await own.open("embed", encoderFolder("bert"), { scope })
      for (const restarts of [1, 2]) {
        const pid = device.pid()!
        process.kill(pid, "SIGSTOP")
        const plan = await Effect.runPromise(
          model.task.plan({ items: [{ type: "text", text: "a" }], truncate: "END" }, context()),
        )
        const request = failureOf(Stream.runDrain(plan.run))
        process.kill(pid, "SIGKILL")
        expect(await request).toMatchObject({ code: "backend_error" })
        const isAgain = ({ event }: { readonly event: string }) =>
          event === "engine.thread_restarted"
        await until(() => own.log.lines.filter(isAgain).length === restarts)
      }
      expect(model.servedBy).toBe("webgpu, now cpu")
      await Effect.runPromise(Scope.close(scope, Effect.runSync(Effect.exit(Effect.void))))
      await own.close()
    }
    // what is loaded with the first ones stays
    for (let i = 0; i < 2; i++) await killTwice()
    const before = held()
    for (let killed = 0; killed < kills; killed += 2) await killTwice()
    await until(() => held().children <= before.children)
    const after = held()
    console.log(`${kills} kills:`, before, after)
    expect(after.files).toBeLessThanOrEqual(before.files + 2)
    expect(after.exitListeners).toBe(before.exitListeners)
    expect(after.heapMb).toBeLessThan(before.heapMb + 10)
  })
})
