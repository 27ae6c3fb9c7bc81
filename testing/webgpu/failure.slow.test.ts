import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { Effect, Stream } from "effect"
import { afterAll, describe, expect, test, vi } from "vitest"
import type { EngineChannel } from "../../core/ports/execution-provider.ts"
import type { LoadedModel } from "../../core/ports/model.ts"
import { writeGraph } from "../../plugins/backend-onnx/onnx/graph-cache.ts"
import { encoderFolder } from "../../plugins/backend-onnx/testing/fixtures.ts"
import {
  collect,
  context,
  failureOf,
  openBackend,
} from "../../plugins/backend-onnx/testing/open-backend.ts"
import { noDevice, testProvider } from "./test-device.ts"

vi.setConfig({ testTimeout: 120_000 })

const root = mkdtempSync(join(tmpdir(), "rakit-webgpu-"))
afterAll(() => rmSync(root, { recursive: true, force: true }))

const until = (holds: () => boolean) => vi.waitUntil(holds, { timeout: 60_000, interval: 20 })

const planned = (model: LoadedModel<"embed">, text: string) =>
  Effect.runPromise(
    model.task.plan({ items: [{ type: "text", text }], truncate: "END" }, context()),
  )

const vectorOf = async (model: LoadedModel<"embed">) =>
  (await collect(await planned(model, "a cat")))[0]!.vector

/** A model on a device, and its process, which tests end. */
const onDevice = async (more: Parameters<typeof testProvider>[0] = {}) => {
  const made = testProvider(more)
  const fixture = openBackend({}, made.provider)
  const model = await fixture.open("embed", encoderFolder("bert"))
  /** Ends the process while it has a request: it is stopped first, so it can't have answered. */
  const endIn = async (signal: NodeJS.Signals | undefined) => {
    const pid = made.device.pid()!
    process.kill(pid, "SIGSTOP")
    const plan = await planned(model, "a dog")
    const request = failureOf(Stream.runDrain(plan.run))
    if (signal) process.kill(pid, signal)
    if (signal === "SIGSEGV") process.kill(pid, "SIGCONT")
    return request
  }
  const restarts = () =>
    fixture.log.lines.filter(({ event }) => event === "engine.thread_restarted").length
  return { ...made, fixture, model, endIn, restarts }
}

describe.skipIf(noDevice)("a device's process", { timeout: 120_000 }, () => {
  test.each(["SIGKILL", "SIGSEGV"] as const)(
    "that ends by %s is started once more, then the CPU serves",
    async (signal) => {
      const { model, device, fixture, log, endIn, restarts } = await onDevice()
      const before = await vectorOf(model)
      expect(await endIn(signal)).toMatchObject({ code: "backend_error" })
      await until(() => restarts() === 1)
      expect(model.servedBy).toBe(`webgpu (${device.name})`)
      expect(await vectorOf(model)).toEqual(before)
      expect(await endIn(signal)).toMatchObject({ code: "backend_error" })
      await until(() => restarts() === 2)
      expect(model.servedBy).toBe("webgpu, now cpu")
      for (const [i, value] of (await vectorOf(model)).entries())
        expect(value).toBeCloseTo(before[i]!, 4)
      expect(device.pid()).toBeUndefined()
      const ends = log.lines.filter(({ event }) => event === "webgpu.process_ended")
      expect(ends.map(({ fields }) => fields?.again)).toEqual([true, false])
      expect(fixture.log.lines).toContainEqual(
        expect.objectContaining({ event: "engine.now_on_cpu", level: "warn" }),
      )
      await fixture.close()
    },
  )

  test("that hangs is killed, and its requests fail", async () => {
    const { model, device, log, fixture, endIn, restarts } = await onDevice({ hangSeconds: 1 })
    expect(await endIn(undefined)).toMatchObject({ code: "backend_error" })
    await until(() => restarts() === 1)
    expect(log.lines.find(({ event }) => event === "webgpu.process_ended")?.fields).toMatchObject({
      reason: expect.stringMatching(/^it said nothing for \d seconds$/),
      again: true,
    })
    expect(model.servedBy).toBe(`webgpu (${device.name})`)
    await fixture.close()
  })

  test("ends with the last engine in it", async () => {
    const { device, fixture } = await onDevice()
    const pid = device.pid()!
    await fixture.close()
    await until(() => !isAlive(pid))
    expect(device.failure()).toBeUndefined()
  })
})

const isAlive = (pid: number): boolean => {
  try {
    process.kill(pid, 0)
    return true
  } catch {
    return false
  }
}

/** A graph that fills memory of the size that it is fed, and adds it up. */
const filling = (name: string): string => {
  const graph = `${name}.onnx`
  writeGraph(root, { graph, weights: `${name}.bin`, target: "gpu" }, (builder) => {
    const shape = builder.input("shape", "int64", [1])
    const filled = builder.node("Expand", [builder.floats([1]), shape])
    const sum = builder.node("ReduceSum", [filled, builder.ints([0])])
    builder.output("sum", sum, "float", [1])
  })
  return join(root, graph)
}

/** The next message of an engine; rejects when it ends before. */
const next = (channel: EngineChannel) =>
  new Promise<{ readonly sum?: number; readonly error?: string }>((resolve, reject) => {
    channel.on("message", resolve)
    channel.on("error", reject)
    channel.on("exit", () => reject(new Error("it ended")))
  })

const entry = new URL("./run-graph.mjs", import.meta.url)

describe.skipIf(noDevice)("an engine in it", { timeout: 120_000 }, () => {
  const runs = async (channel: EngineChannel, size: number) => {
    const answer = next(channel)
    channel.postMessage([size])
    return answer
  }

  test("whose run takes more memory than a tensor may have fails alone", async () => {
    const { device } = testProvider()
    const [one, other] = ["one", "other"].map((name) => device.start(entry, filling(name)))
    await Promise.all([next(one!), next(other!)])
    expect(await runs(one!, 1000)).toEqual({ sum: 1000 })
    // 16 GiB: the provider refuses it on whatever device
    expect(await runs(one!, 2 ** 32)).toMatchObject({ error: expect.any(String) })
    expect(await runs(one!, 1000)).toEqual({ sum: 1000 })
    expect(await runs(other!, 3)).toEqual({ sum: 3 })
    for (const channel of [one!, other!]) channel.postMessage("close")
    await until(() => device.pid() === undefined)
    expect(device.failure()).toBeUndefined()
  })

  test("that can't be opened ends alone, with the reason", async () => {
    const { device } = testProvider()
    await expect(next(device.start(entry, join(root, "nothing.onnx")))).rejects.toThrow(
      "nothing.onnx",
    )
    expect(device.failure()).toBeUndefined()
  })
})
