// @huggingface/transformers in a process of its own. `node bench/peers/transformers-js.js FOLDER`,
// which holds `model/`.
import { env, pipeline } from "@huggingface/transformers"
import { serveEmbedder } from "./callers.js"

env.allowRemoteModels = false
env.localModelPath = process.argv[2]
const extract = await pipeline("feature-extraction", "model", { dtype: "fp32" })

serveEmbedder(async (texts) => {
  const { data, dims } = await extract(texts, { pooling: "mean", normalize: true })
  return texts.map((_, i) => data.slice(i * dims[1], (i + 1) * dims[1]))
})
