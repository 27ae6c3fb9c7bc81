import { writeFileSync } from "node:fs"
import OpenAI, { toFile } from "openai"
import { stringify } from "yaml"
import { type Deployment, makeDeployment } from "../deployment/deployment.ts"
import { startServer } from "../deployment/server-process.ts"
import { starterConfigOf } from "../deployment/starter-config.ts"

/** `rakit serve` with the embedding model and the reranker of config/starter.yaml. */
export interface ServedRetrieval {
  readonly client: OpenAI
  readonly pid: number
  close(): Promise<void>
}

/** `settings` of the plugin endpoint-retrieval. */
export const serveRetrieval = async (settings: object = {}): Promise<ServedRetrieval> => {
  const { RAKIT_MODELS = "" } = process.env
  if (!RAKIT_MODELS) throw new Error("RAKIT_MODELS must name a folder with pulled models")
  const deployment: Deployment = makeDeployment({
    config: "starter.yaml",
    billing: "billing-free",
    env: { RAKIT_MODELS },
  })
  const { plugins, ...config } = starterConfigOf(deployment)
  writeFileSync(
    deployment.config,
    stringify({
      ...config,
      plugins: { ...plugins, "model-minilm-reranker": {}, "endpoint-retrieval": settings },
      models: config.models.filter(({ id }) => id === "svc-embed"),
    }),
  )
  const server = await startServer(deployment)
  return {
    client: new OpenAI({ apiKey: deployment.apiKey, baseURL: `${server.url}/v1`, maxRetries: 5 }),
    pid: server.pid,
    close: async () => {
      await server.stop()
      deployment.remove()
    },
  }
}

/** Uploads a knowledge file and waits until it can be searched; rejects with why it can't be. */
export const upload = async (
  client: OpenAI,
  name: string,
  content: Buffer | string,
): Promise<string> => {
  const { id } = await client.files.create({
    file: await toFile(Buffer.from(content), name),
    purpose: "knowledge" as "assistants",
  })
  const { status, status_details } = await client.files.waitForProcessing(id, {
    pollInterval: 500,
    maxWait: 1_800_000,
  })
  if (status !== "processed") throw new Error(`${name}: ${status}: ${status_details}`)
  return id
}
