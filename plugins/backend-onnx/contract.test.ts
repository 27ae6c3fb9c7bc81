import { writeFileSync } from "node:fs"
import { join } from "node:path"
import type { TaskName } from "../../core/ports/model.ts"
import {
  chatModelContract,
  embedModelContract,
  imageModelContract,
  type OpenedModel,
  rerankModelContract,
  transcribeModelContract,
} from "../../testing/contracts/model.ts"
import { drawingModel } from "./diffusion/testing/drawing-model.ts"
import { imageModelOf } from "./diffusion/testing/local-engine.ts"
import { diffusionFolder } from "./diffusion/transformers/testing/run-part.ts"
import { thinkingTemplate } from "./testing/chat-templates.ts"
import { encoderFolder, fixtureFolder } from "./testing/fixtures.ts"
import { type GgufValue, writeGguf } from "./testing/gguf-writer.ts"
import { hearingFolder } from "./testing/hearing-fixtures.ts"
import { openBackend } from "./testing/open-backend.ts"
import { writeTinyBert } from "./testing/tiny-bert.ts"
import { tinyLlama } from "./testing/tiny-llama.ts"

/**
 * The model port's contract, on tiny models: random weights and small checkpoints of each
 * architecture.
 */
const opened =
  <T extends TaskName>(task: T, path: (folder: string) => string) =>
  async (): Promise<OpenedModel<T>> => {
    const fixture = openBackend()
    const loaded = await fixture.open(task, path(fixture.dataDir), { contextTokens: 1024 })
    return { id: "m", loaded, close: fixture.close }
  }

const tinyLlamaOf =
  (seed: number, more: Readonly<Record<string, GgufValue>> = {}) =>
  (folder: string) => {
    const content = tinyLlama(seed)
    const path = join(folder, "tiny.gguf")
    writeFileSync(path, writeGguf({ ...content, metadata: { ...content.metadata, ...more } }))
    return path
  }

chatModelContract("a Llama in GGUF", opened("chat", tinyLlamaOf(1)))
chatModelContract(
  "a Llama that thinks",
  opened("chat", tinyLlamaOf(1, { "tokenizer.chat_template": thinkingTemplate })),
)
for (const name of ["llama", "qwen2", "qwen3", "mistral"])
  chatModelContract(
    `the checkpoint '${name}'`,
    opened("chat", () => fixtureFolder(name)),
  )

embedModelContract(
  "a BERT",
  opened("embed", (folder) => writeTinyBert(join(folder, "tiny"), {}, 96)),
)

transcribeModelContract(
  "the checkpoint 'whisper'",
  opened("transcribe", () => hearingFolder("whisper")),
)

rerankModelContract(
  "a Llama in GGUF",
  opened("rerank", tinyLlamaOf(6, { "llama.context_length": 1024 })),
)
rerankModelContract(
  "a tiny Qwen3-Reranker",
  opened("rerank", () => fixtureFolder("qwen3-reranker")),
)
rerankModelContract(
  "a cross-encoder",
  opened("rerank", () => encoderFolder("xlm-roberta-classifier")),
)

// a picture that depends on the noise: what the model says is taken for the picture
const scheduler = new Map([
  ["_class_name", "FlowMatchEulerDiscreteScheduler"],
  ["prediction_type", "sample"],
])
imageModelContract("a model of another size than asked", async () => ({
  id: "m",
  loaded: imageModelOf(drawingModel({ scheduler, multiple: 64 }, { scale: 5, pauses: 2 }).model),
}))
imageModelContract("a model that takes no pictures", async () => ({
  id: "m",
  loaded: imageModelOf(drawingModel({ scheduler, sources: "none", maxSources: 0 }).model),
}))
imageModelContract(
  "the checkpoint 'sd'",
  opened("image", () => diffusionFolder("sd")),
)
