import { writeFileSync } from "node:fs"
import { join } from "node:path"
import { describe, vi } from "vitest"
import type { TaskName } from "../../core/ports/model.ts"
import { diffusionFolder } from "../../plugins/backend-onnx/diffusion/transformers/testing/run-part.ts"
import { encoderFolder, fixtureFolder } from "../../plugins/backend-onnx/testing/fixtures.ts"
import { writeGguf } from "../../plugins/backend-onnx/testing/gguf-writer.ts"
import { openBackend } from "../../plugins/backend-onnx/testing/open-backend.ts"
import { writeTinyBert } from "../../plugins/backend-onnx/testing/tiny-bert.ts"
import { tinyLlama } from "../../plugins/backend-onnx/testing/tiny-llama.ts"
import {
  chatModelContract,
  embedModelContract,
  imageModelContract,
  type OpenedModel,
  rerankModelContract,
} from "../contracts/model.ts"
import { noDevice, testProvider } from "./test-device.ts"

vi.setConfig({ testTimeout: 120_000, hookTimeout: 120_000 })

/** The model port's contract, on a device. */
const opened =
  <T extends TaskName>(task: T, path: (folder: string) => string) =>
  async (): Promise<OpenedModel<T>> => {
    const { provider } = testProvider()
    const fixture = openBackend({}, provider)
    const loaded = await fixture.open(task, path(fixture.dataDir), { contextTokens: 1024 })
    if (loaded.servedBy.endsWith("cpu")) throw new Error(loaded.servedBy)
    return { id: "m", loaded, close: fixture.close }
  }

const tinyLlamaOf = (seed: number) => (folder: string) => {
  const content = tinyLlama(seed)
  const path = join(folder, "tiny.gguf")
  const metadata = { ...content.metadata, "llama.context_length": 1024 }
  writeFileSync(path, writeGguf({ ...content, metadata }))
  return path
}

// the others take seven minutes on a software adapter
const inFull = process.env.RAKIT_TEST_RUNS_IN_FULL === "1"

describe.skipIf(noDevice)("on a device", { timeout: 120_000 }, () => {
  chatModelContract("a Llama in GGUF", opened("chat", tinyLlamaOf(1)))
  embedModelContract(
    "a BERT",
    opened("embed", (folder) => writeTinyBert(join(folder, "tiny"), {}, 96)),
  )
  if (!inFull) return
  chatModelContract(
    "the checkpoint 'qwen3'",
    opened("chat", () => fixtureFolder("qwen3")),
  )
  rerankModelContract(
    "a tiny Qwen3-Reranker",
    opened("rerank", () => fixtureFolder("qwen3-reranker")),
  )
  rerankModelContract(
    "a cross-encoder",
    opened("rerank", () => encoderFolder("xlm-roberta-classifier")),
  )
  imageModelContract(
    "the checkpoint 'sd'",
    opened("image", () => diffusionFolder("sd")),
  )
})
