import { writeFileSync } from "node:fs"
import { setTimeout as sleep } from "node:timers/promises"
import { Pool } from "undici"
import { stringify } from "yaml"
import { chatModelPath, randomModelIn } from "../chat/models.ts"
import { type Deployment, makeDeployment } from "../deployment/deployment.ts"
import { startBareServer, startServer, timeToEnd } from "../deployment/server-process.ts"
import { starterConfigOf } from "../deployment/starter-config.ts"
import { embeddingBody } from "../path/requests.ts"
import { type Memory, memoryOf } from "./memory.ts"

/** One start, in ms from spawn; NaN where a case does not apply. */
export interface Start {
  readonly listeningMs: number
  readonly startedMs: number
  readonly readyMs: number
  /** The first answer of the chat model: one token. */
  readonly answerMs: number
  readonly idle: Memory
  readonly afterCalls: Memory
}

export interface StartCase {
  readonly name: string
  start(): Promise<Start>
  close(): void
}

/** Calls of the second memory figure; one in twenty is a chat. */
export const calls = 200

/** Waits until garbage of the start is collected and the first checks have passed. */
const settleMs = 300

const shortChat = {
  model: "svc-lyt",
  messages: [{ role: "user", content: "Say hello." }],
  max_tokens: 8,
}

const noMemory: Memory = { rssMb: Number.NaN, treePssMb: Number.NaN, postgresPssMb: Number.NaN }
const nothing = {
  listeningMs: Number.NaN,
  startedMs: Number.NaN,
  readyMs: Number.NaN,
  answerMs: Number.NaN,
  idle: noMemory,
  afterCalls: noMemory,
}

const callOften = async (url: string, apiKey: string): Promise<void> => {
  const pool = new Pool(url, { connections: 8 })
  const headers = { authorization: `Bearer ${apiKey}`, "content-type": "application/json" }
  const one = async (n: number) => {
    const [path, body] =
      n % 20 === 0 ? ["/v1/chat/completions", shortChat] : ["/v1/embeddings", embeddingBody]
    const reply = await pool.request({ method: "POST", path, headers, body: JSON.stringify(body) })
    const text = await reply.body.text()
    if (reply.statusCode !== 200) throw new Error(`${path} answered ${reply.statusCode}: ${text}`)
  }
  let next = 0
  const worker = async () => {
    while (next < calls) await one(next++)
  }
  await Promise.all(Array.from({ length: 8 }, worker))
  await pool.close()
}

const answerOnce = async (url: string, apiKey: string): Promise<void> => {
  const reply = await fetch(`${url}/v1/chat/completions`, {
    method: "POST",
    headers: { authorization: `Bearer ${apiKey}`, "content-type": "application/json" },
    body: JSON.stringify({
      model: "svc-omni",
      messages: [{ role: "user", content: "What is the capital of Indonesia?" }],
      max_tokens: 1,
    }),
  })
  if (!reply.ok) throw new Error(`the first call answered ${reply.status}: ${await reply.text()}`)
  await reply.text()
}

/** From spawn to the first answer. */
const startAndAnswer = async (deployment: Deployment): Promise<Start> => {
  const startedMs = performance.now()
  const server = await startServer(deployment)
  try {
    await answerOnce(server.url, deployment.apiKey)
    return { ...nothing, ...server, answerMs: performance.now() - startedMs }
  } finally {
    await server.stop()
  }
}

const startRakit = async (deployment: Deployment, withMemory: boolean): Promise<Start> => {
  const server = await startServer(deployment)
  try {
    if (!withMemory) return { ...nothing, ...server }
    await sleep(settleMs)
    const idle = memoryOf(server.pid)
    await callOften(server.url, deployment.apiKey)
    await sleep(settleMs)
    return { ...nothing, ...server, idle, afterCalls: memoryOf(server.pid) }
  } finally {
    await server.stop()
  }
}

export const bareNode = (): StartCase => ({
  name: "node -e 0 (to its end)",
  start: async () => ({ ...nothing, listeningMs: await timeToEnd(["-e", "0"]) }),
  close: () => {},
})

export const helloServer = (): StartCase => ({
  name: "node:http hello server",
  start: async () => {
    const server = await startBareServer()
    const idle = memoryOf(server.pid)
    await server.stop()
    return {
      ...nothing,
      listeningMs: server.listeningMs,
      startedMs: server.listeningMs,
      readyMs: server.listeningMs,
      idle,
    }
  },
  close: () => {},
})

/** A new data folder each time: makes the database cluster, the tables and the first account. */
export const coldRakit = (): StartCase => ({
  name: "rakit, fake models, empty data folder",
  start: async () => {
    const deployment = makeDeployment()
    try {
      return await startRakit(deployment, false)
    } finally {
      deployment.remove()
    }
  },
  close: () => {},
})

/** The second and later starts on one data folder. */
const warmRakit = async (name: string, deployment: Deployment): Promise<StartCase> => {
  await startRakit(deployment, false)
  return { name, start: () => startRakit(deployment, true), close: deployment.remove }
}

export const warmFake = () => warmRakit("rakit, fake models", makeDeployment())
export const warmStarter = (modelsDir: string) =>
  warmRakit(
    "rakit, config/starter.yaml",
    makeDeployment({ config: "starter.yaml", env: { RAKIT_MODELS: modelsDir } }),
  )

/** Only a chat model, of random weights in the shape of 1B; `modelsDir` has the starter's. */
export const warmLarge = async (): Promise<StartCase> => {
  const deployment = makeDeployment({ config: "starter.yaml" })
  const path = randomModelIn(deployment.folder, "1B", chatModelPath(undefined))
  const config = starterConfigOf(deployment)
  const models = config.models
    .filter(({ id }) => id === "svc-omni")
    .map((entry) => ({ ...entry, sources: [{ url: `file:${path}` }] }))
  writeFileSync(deployment.config, stringify({ ...config, models }))
  // builds the graph
  await startAndAnswer(deployment)
  return {
    name: "rakit, a chat model of 1B",
    start: () => startAndAnswer(deployment),
    close: deployment.remove,
  }
}
