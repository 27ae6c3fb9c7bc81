import { readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { parse, stringify } from "yaml"
import { thinkingTemplate } from "../../plugins/backend-onnx/testing/chat-templates.ts"
import { writeGguf } from "../../plugins/backend-onnx/testing/gguf-writer.ts"
import { writeTinyBert } from "../../plugins/backend-onnx/testing/tiny-bert.ts"
import { tinyLlama } from "../../plugins/backend-onnx/testing/tiny-llama.ts"

const configFolder = fileURLToPath(new URL("../../config", import.meta.url))

/** A chat model with random weights: the real engine, which compiles schemas. */
const modelIn = (folder: string, id: string) => {
  const content = tinyLlama()
  const file = join(folder, "tiny.gguf")
  const metadata = { ...content.metadata, "llama.context_length": 4096 }
  writeFileSync(file, writeGguf({ ...content, metadata }))
  return {
    id,
    task: "chat",
    limits: { contextTokens: 4096, maxOutputTokens: 512 },
    capabilities: ["chat"],
    price: { input: 1500, output: 6000 },
    backend: "onnx",
    sources: [{ url: `file:${file}` }],
  }
}

/**
 * Writes a config file into the folder: the given one, and a tiny model beside its fake ones, or
 * in the place of the one of this id. `settings` are those of backend-onnx.
 */
export const addTinyModel = (
  folder: string,
  config: string = join(configFolder, "test.yaml"),
  { id = "svc-tiny", settings = {} }: { readonly id?: string; readonly settings?: object } = {},
): string => {
  const text = readFileSync(config, "utf8").replace(
    "../testing/",
    `${join(configFolder, "..")}/testing/`,
  )
  const { plugins, models, ...rest } = parse(text)
  const file = join(folder, `with-${id}.yaml`)
  const others = models.filter((model: { readonly id: string }) => model.id !== id)
  const all = { ...rest, plugins: { ...plugins, "backend-onnx": settings } }
  writeFileSync(file, stringify({ ...all, models: [...others, modelIn(folder, id)] }))
  return file
}

const fixtures = fileURLToPath(new URL("../../plugins/backend-onnx/fixtures", import.meta.url))

/** Writes a tiny model of each kind into the folder; their entries of a config file. */
export const writeTinyModels = (folder: string): readonly object[] => {
  const content = tinyLlama(1)
  const thinking = join(folder, "thinking.gguf")
  const metadata = { ...content.metadata, "tokenizer.chat_template": thinkingTemplate }
  writeFileSync(thinking, writeGguf({ ...content, metadata }))
  const entry = (id: string, task: string, path: string, contextTokens = 1024) => ({
    id,
    task,
    backend: "onnx",
    limits: { contextTokens, ...(task === "chat" && { maxOutputTokens: 512 }) },
    capabilities: [
      ...["chat", "tool_use", "structured_output", "thinking", "prompt_caching"],
      ...["image_generation", "image_editing"],
    ],
    ...(task === "image" && { modalities: ["text", "image"] }),
    sources: [{ url: `file:${path}` }],
  })
  return [
    entry("chat", "chat", thinking),
    entry("embed", "embed", `${writeTinyBert(join(folder, "bert"), {}, 96)}/`),
    entry("rerank", "rerank", `${fixtures}/encoders/xlm-roberta-classifier/`),
    entry("image", "image", `${fixtures}/diffusion/sd/`),
  ]
}
