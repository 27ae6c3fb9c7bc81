// A whole server whose `svc-embed` is this model, asked by POST /v1/embeddings; the client is in this
// process. `node --import tsx bench/embed/http-embedder.ts MODEL THREADS`
import { writeFileSync } from "node:fs"
import { Agent, request } from "node:http"
import { text } from "node:stream/consumers"
import { stringify } from "yaml"
import { makeDeployment } from "../deployment/deployment.ts"
import { startServer } from "../deployment/server-process.ts"
import { starterConfigOf } from "../deployment/starter-config.ts"
import { serveEmbedder } from "./protocol.ts"

const [path, threads] = process.argv.slice(2)
const deployment = makeDeployment({ config: "starter.yaml" })
const config = starterConfigOf(deployment)
const models = config.models
  .filter(({ id }) => id === "svc-embed")
  .map((entry) => ({
    ...entry,
    modalities: ["text"],
    price: { input: 1500 },
    sources: [{ url: `file:${path}/` }],
  }))
const plugins = { ...config.plugins, "backend-onnx": { threads: Number(threads) } }
writeFileSync(deployment.config, stringify({ ...config, plugins, models }))
const server = await startServer(deployment)

const agent = new Agent({ keepAlive: true })
const headers = {
  authorization: `Bearer ${deployment.apiKey}`,
  "content-type": "application/json",
}
const post = (body: string): Promise<string> =>
  new Promise((resolve, reject) => {
    request(`${server.url}/v1/embeddings`, { method: "POST", agent, headers }, (reply) => {
      const read = text(reply)
      if (reply.statusCode === 200) resolve(read)
      else read.then((why) => reject(new Error(`${reply.statusCode} ${why}`)), reject)
    })
      .on("error", reject)
      .end(body)
  })

const floatsOf = (base64: string): Float32Array => {
  const bytes = Buffer.from(base64, "base64")
  return new Float32Array(bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.length))
}

const close = async () => {
  await server.stop()
  deployment.remove()
}
await serveEmbedder(async (texts) => {
  const body = { model: "svc-embed", input: texts, encoding_format: "base64" }
  const { data } = JSON.parse(await post(JSON.stringify(body))) as {
    readonly data: readonly { readonly embedding: string }[]
  }
  return data.map(({ embedding }) => floatsOf(embedding))
}, close)
