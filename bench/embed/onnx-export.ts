import { cpSync, mkdirSync, readdirSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { Tokenizer } from "tokenizers"
import type { EncoderBatch } from "../../plugins/backend-onnx/encoding/encoder-model.ts"
import { folderEncoder } from "../../plugins/backend-onnx/encoding/families.ts"
import type { GraphBuilder } from "../../plugins/backend-onnx/onnx/graph-builder.ts"
import { writeGraph } from "../../plugins/backend-onnx/onnx/graph-cache.ts"
import { openSafetensorsFolder } from "../../plugins/backend-onnx/weights/safetensors-folder.ts"

const batchIn = (graph: GraphBuilder): EncoderBatch => {
  const ids = graph.input("input_ids", "int64", ["B", "S"])
  const real = graph.toFloat(graph.input("attention_mask", "int64", ["B", "S"]))
  const length = graph.node("Squeeze", [
    graph.node("Shape", [ids], { attributes: { start: 1, end: 2 } }),
    graph.ints([0]),
  ])
  const hidden = graph.node("Mul", [graph.node("Sub", [graph.floats(1), real]), graph.floats(-1e9)])
  return {
    ids,
    real,
    positions: graph.node("Range", [graph.ints(0), length, graph.ints(1)]),
    mask: graph.node("Unsqueeze", [hidden, graph.ints([1, 2])]),
    lengths: ids,
    segments: () => ids,
  }
}

/**
 * Writes `model/` as transformers.js reads it, from the same weights and with the same operators as
 * the engine's graph up to the states of all tokens: what peers are measured by is what they do
 * around it. `ids.json` has the tokens of the texts.
 */
export const writeExport = async (
  path: string,
  folder: string,
  texts: readonly string[],
): Promise<void> => {
  const out = join(folder, "model")
  mkdirSync(join(out, "onnx"), { recursive: true })
  for (const name of readdirSync(path).filter((file) => file.endsWith(".json")))
    cpSync(join(path, name), join(out, name))
  const file = openSafetensorsFolder(path)
  try {
    const files = { graph: "model.onnx", weights: "weights.bin" }
    writeGraph(join(out, "onnx"), files, (graph) => {
      const { model } = folderEncoder(path)
      const states = model.states({ graph, file, precision: "fp32" }, batchIn(graph))
      graph.output("last_hidden_state", states, "float", ["B", "S", model.config.width])
    })
  } finally {
    file.close()
  }
  const tokenizer = Tokenizer.fromFile(join(path, "tokenizer.json"))
  tokenizer.disablePadding()
  tokenizer.disableTruncation()
  const ids: Record<string, readonly number[]> = {}
  const { maxTokens } = folderEncoder(path).config
  for (const text of texts) ids[text] = (await tokenizer.encode(text)).getIds().slice(0, maxTokens)
  writeFileSync(join(folder, "ids.json"), JSON.stringify(ids))
}
