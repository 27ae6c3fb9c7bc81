import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest"
import { parse, stringify } from "yaml"
import { writeGguf } from "../../plugins/backend-onnx/testing/gguf-writer.ts"
import { writeTinyBert } from "../../plugins/backend-onnx/testing/tiny-bert.ts"
import { tinyLlama } from "../../plugins/backend-onnx/testing/tiny-llama.ts"
import { askDashboard } from "../dashboard-client.ts"
import { type Platform, startPlatform } from "../platform.ts"
import { noDevice, settingsOf } from "./test-device.ts"

/** A model on a device, through the whole server: what is shown, and what an end costs. */
const skipped = noDevice ?? (process.platform === "linux" ? undefined : "needs /proc")
const folder = mkdtempSync(join(tmpdir(), "rakit-device-"))
let platform: Platform
let session: string

describe.skipIf(skipped)("a server with a model on a device", () => {
  beforeAll(async () => {
    const path = join(import.meta.dirname, "../../config/test.yaml")
    const shared = parse(readFileSync(path, "utf8")) as { plugins: Record<string, unknown> }
    const { "../testing/fakes/backend.ts": _, ...plugins } = shared.plugins
    const webgpu = settingsOf({ hangSeconds: 12 })
    const model = {
      id: "svc-embed",
      task: "embed",
      backend: "webgpu",
      limits: { contextTokens: 64 },
      price: { input: 1500 },
      sources: [{ url: `file:${writeTinyBert(join(folder, "text"))}/` }],
    }
    const { metadata, ...tensors } = tinyLlama(1)
    const gguf = writeGguf({ ...tensors, metadata: { ...metadata, "llama.context_length": 1024 } })
    writeFileSync(join(folder, "tiny.gguf"), gguf)
    const chat = {
      ...model,
      id: "svc-lyt",
      task: "chat",
      limits: { contextTokens: 1024, maxOutputTokens: 256 },
      price: { input: 1500, output: 1500 },
      sources: [{ url: `file:${join(folder, "tiny.gguf")}` }],
    }
    const config = join(folder, "device.yaml")
    writeFileSync(
      config,
      stringify({
        ...shared,
        plugins: { ...plugins, "backend-onnx": { threads: 1 }, "backend-webgpu": webgpu },
        models: [model, chat],
      }),
    )
    platform = await startPlatform({ config })
    const { url, credentials } = platform
    session = (await askDashboard(url, "/dashboard/login", "", credentials)).token
  }, 120_000)
  afterAll(async () => {
    await platform.close()
    rmSync(folder, { recursive: true, force: true })
  })

  const get = async (path: string, token = platform.credentials.api_key) => {
    const headers = { authorization: `Bearer ${token}` }
    return (await fetch(platform.url + path, { headers })).json() as Promise<never>
  }
  const balance = async () =>
    ((await get("/dashboard/me", session)) as { balance_idr: number }).balance_idr
  const embed = async () => {
    const reply = await fetch(`${platform.url}/v1/embeddings`, {
      method: "POST",
      headers: {
        authorization: `Bearer ${platform.credentials.api_key}`,
        "content-type": "application/json",
      },
      body: JSON.stringify({ model: "svc-embed", input: ["a b c"] }),
    })
    const { error, data } = (await reply.json()) as {
      readonly error?: { readonly code: string }
      readonly data?: readonly unknown[]
    }
    return { status: reply.status, code: error?.code, vectors: data?.length }
  }
  const shown = async () => {
    const ready = (await get("/readyz")) as { models: readonly { served_by: string }[] }
    const { served_by } = (await get("/v1/models/svc-embed")) as { served_by: string }
    return [ready.models[0]!.served_by, served_by]
  }
  /** The device's process, found among the children of the server. */
  const devicePid = (): number | undefined =>
    readdirSync(`/proc/${platform.process.pid}/task`)
      .flatMap((task) =>
        readFileSync(`/proc/${platform.process.pid}/task/${task}/children`, "utf8").split(" "),
      )
      .filter(Boolean)
      .map(Number)
      .find((pid) => readFileSync(`/proc/${pid}/cmdline`, "utf8").includes("backend-webgpu"))
  /** All models serve again: a process that opens one is given an hour before it counts as hung. */
  const served = async () => {
    const isReady = async () =>
      (await embed()).status === 200 && (await fetch(`${platform.url}/readyz`)).status === 200
    await vi.waitUntil(isReady, { timeout: 60_000, interval: 200 })
  }

  /** The device that the receipt of a chat names, and whether `rakit replay` could run it again. */
  const receipt = async () => {
    const reply = await fetch(`${platform.url}/v1/chat/completions`, {
      method: "POST",
      headers: {
        authorization: `Bearer ${platform.credentials.api_key}`,
        "content-type": "application/json",
      },
      body: JSON.stringify({
        model: "svc-lyt",
        messages: [{ role: "user", content: "a b c" }],
        max_tokens: 4,
      }),
    })
    expect(reply.status).toBe(200)
    await reply.arrayBuffer()
    const { jws } = (await get(`/v1/receipts/${reply.headers.get("x-call-id")}`)) as {
      readonly jws: string
    }
    const payload = Buffer.from(jws.split(".")[1]!, "base64url").toString()
    const { evidence } = JSON.parse(payload) as {
      readonly evidence: { readonly device: string; readonly model: string | null }
    }
    return [evidence.device, evidence.model === null ? "not replayable" : "replayable"]
  }

  test("says so, and a call in a process that hangs costs nothing", async () => {
    const onDevice = expect.stringMatching(/^webgpu \(.+\)$/)
    expect(await shown()).toEqual([onDevice, onDevice])
    expect(await receipt()).toEqual([onDevice, "not replayable"])
    const full = await balance()
    expect(await embed()).toMatchObject({ status: 200, vectors: 1 })
    const before = await balance()
    expect(before).toBeLessThan(full)
    process.kill(devicePid()!, "SIGSTOP")
    expect(await embed()).toMatchObject({ status: 500, code: "backend_error" })
    expect(await balance()).toBe(before)
    await served()
    expect(await shown()).toEqual([onDevice, onDevice])
    const again = await balance()
    process.kill(devicePid()!, "SIGSTOP")
    expect(await embed()).toMatchObject({ status: 500, code: "backend_error" })
    expect(await balance()).toBe(again)
    await served()
    expect(await shown()).toEqual(["webgpu, now cpu", "webgpu, now cpu"])
    expect(devicePid()).toBeUndefined()
    expect((await receipt())[0]).toBe("webgpu, now cpu")
  }, 180_000)
})
