import { existsSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { stringify } from "yaml"
import { root } from "../deployment/code.ts"
import { makeDeployment } from "../deployment/deployment.ts"
import { startServer } from "../deployment/server-process.ts"
import { starterConfigOf } from "../deployment/starter-config.ts"

export interface LoopGap {
  readonly p50Ms: number
  readonly p99Ms: number
  readonly maxMs: number
  readonly samples: number
}

/** The whole server with one chat model. */
export interface ChatServer {
  /** Streams an answer; returns the number of chunks. */
  chat(content: string, maxTokens: number): Promise<number>
  /** Event-loop delays of the HTTP thread since the last call. */
  loopGap(): Promise<LoopGap>
  residentMb(): number
  stop(): Promise<void>
}

const readWhole = async (response: Response): Promise<number> => {
  if (!response.ok) throw new Error(`${response.status} ${await response.text()}`)
  let chunks = 0
  const decoder = new TextDecoder()
  for await (const piece of response.body!)
    chunks += decoder.decode(piece as Uint8Array, { stream: true }).split("data: ").length - 1
  return chunks
}

export const startChatServer = async (model: string, settings: object): Promise<ChatServer> => {
  const deployment = makeDeployment({ config: "starter.yaml" })
  const gapFile = join(deployment.folder, "loop-gap.json")
  const config = starterConfigOf(deployment)
  const chat = config.models
    .filter(({ id }) => id === "svc-omni")
    .map((entry) => ({ ...entry, sources: [{ url: `file:${model}` }] }))
  const plugins = { ...config.plugins, "backend-onnx": settings }
  writeFileSync(deployment.config, stringify({ ...config, plugins, models: chat }))
  const server = await startServer({
    ...deployment,
    env: {
      ...deployment.env,
      LOOP_GAP_FILE: gapFile,
      NODE_OPTIONS: `--import ${join(root, "bench/peers/loop-gap.mjs")}`,
    },
  })
  const body = (content: string, max_tokens: number) =>
    JSON.stringify({
      model: "svc-omni",
      messages: [{ role: "user", content }],
      max_tokens,
      stream: true,
    })
  return {
    chat: async (content, maxTokens) => {
      const headers = {
        authorization: `Bearer ${deployment.apiKey}`,
        "content-type": "application/json",
      }
      return readWhole(
        await fetch(`${server.url}/v1/chat/completions`, {
          method: "POST",
          headers,
          body: body(content, maxTokens),
        }),
      )
    },
    loopGap: async () => {
      rmSync(gapFile, { force: true })
      process.kill(server.pid, "SIGUSR2")
      while (!existsSync(gapFile)) await new Promise((resolve) => setTimeout(resolve, 20))
      return JSON.parse(readFileSync(gapFile, "utf8")) as LoopGap
    },
    residentMb: () =>
      Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${server.pid}/status`, "utf8"))?.[1]) / 1024,
    stop: async () => {
      await server.stop()
      deployment.remove()
    },
  }
}
