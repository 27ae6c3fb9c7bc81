// onnxruntime-node with its own defaults, and nothing around it but padding and the mean: texts are
// tokenized beforehand. `node bench/peers/bare-onnx.js FOLDER`, which holds `model/` and `ids.json`.
import { readFileSync } from "node:fs"
import { join } from "node:path"
import { InferenceSession, Tensor } from "onnxruntime-node"
import { serveEmbedder } from "./callers.js"

const folder = process.argv[2]
const idsOf = new Map(Object.entries(JSON.parse(readFileSync(join(folder, "ids.json"), "utf8"))))
const session = await InferenceSession.create(join(folder, "model/onnx/model.onnx"))

serveEmbedder(async (texts) => {
  const all = texts.map((text) => idsOf.get(text))
  const width = Math.max(...all.map((ids) => ids.length))
  const ids = new BigInt64Array(all.length * width)
  const mask = new BigInt64Array(all.length * width)
  for (const [row, tokens] of all.entries())
    for (const [i, id] of tokens.entries()) {
      ids[row * width + i] = BigInt(id)
      mask[row * width + i] = 1n
    }
  const dims = [all.length, width]
  const { last_hidden_state: states } = await session.run({
    input_ids: new Tensor("int64", ids, dims),
    attention_mask: new Tensor("int64", mask, dims),
  })
  const size = states.dims[2]
  return all.map((tokens, row) => {
    const sum = new Float32Array(size)
    for (let i = 0; i < tokens.length; i++)
      for (let at = 0; at < size; at++) sum[at] += states.data[(row * width + i) * size + at]
    const norm = Math.hypot(...sum)
    return sum.map((value) => value / norm)
  })
})
