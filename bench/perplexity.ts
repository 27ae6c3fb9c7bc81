// How much a model loses by quantization: perplexity on a fixed text. `node --import tsx bench/perplexity.ts model.gguf [more.gguf or folders ...]`
import { mkdtempSync, readFileSync, rmSync, statSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { KvCache } from "../plugins/backend-onnx/engine/kv-cache.ts"
import type { Decoder } from "../plugins/backend-onnx/families/decoder.ts"
import { openDecoder } from "../plugins/backend-onnx/families/open-decoder.ts"
import { precisions } from "../plugins/backend-onnx/onnx/linear.ts"
import { loadChatTokenizer } from "../plugins/backend-onnx/tokenizer/chat-tokenizer.ts"
import { printLoadAfter, printMachine } from "./measure/machine.ts"
import { figure, printTable } from "./measure/table.ts"

const text = readFileSync(join(import.meta.dirname, "perplexity", "text.txt"), "utf8")
const chunk = 64

/** Minus the logarithm of the probability of token `wanted`. */
const surprise = (logits: Float32Array, wanted: number): number => {
  let largest = Number.NEGATIVE_INFINITY
  for (const logit of logits) largest = Math.max(largest, logit)
  let sum = 0
  for (const logit of logits) sum += Math.exp(logit - largest)
  return largest + Math.log(sum) - logits[wanted]!
}

const tokensOf = async ({ folder, session }: Decoder): Promise<readonly number[]> => {
  const ids = (await loadChatTokenizer(folder).tokenizer.encode(text, null, { addSpecialTokens: false })).getIds()
  return ids.slice(0, session.shape.contextTokens)
}

const perplexity = async ({ session }: Decoder, ids: readonly number[]): Promise<number> => {
  const cache = new KvCache(session.shape, ids.length)
  const size = session.shape.vocabulary
  let sum = 0
  for (let at = 0; at + 1 < ids.length; at += chunk) {
    const part = ids.slice(at, Math.min(at + chunk, ids.length - 1))
    cache.reserve(part.length)
    const { logits, fresh } = await session.step({
      rows: 1,
      count: part.length,
      ids: part,
      pastLens: [cache.length],
      past: cache.bank.arrays,
      capacity: cache.capacity,
      logitsAt: part.map((_, i) => i),
    })
    cache.append(fresh, part.length)
    for (let i = 0; i < part.length; i++) sum += surprise(logits.subarray(i * size, (i + 1) * size), ids[at + i + 1]!)
  }
  return Math.exp(sum / (ids.length - 1))
}

const measure = async (path: string, graphs: string): Promise<void> => {
  const found = new Map<string, number>()
  const rows: string[][] = []
  let tokens = 0
  for (const precision of ["fp32", ...precisions.filter((other) => other !== "fp32")] as const) {
    const startedMs = performance.now()
    const decoder = await openDecoder({ path, graphs, precision, threads: 2 }, () => {})
    const openedMs = performance.now() - startedMs
    const ids = await tokensOf(decoder)
    tokens = ids.length
    const value = await perplexity(decoder, ids)
    found.set(precision, value)
    const exact = found.get("fp32")!
    const megabytes = statSync(join(decoder.folder, "weights.bin")).size / 1e6
    rows.push([precision, value.toFixed(3), `${(100 * (value / exact - 1)).toFixed(2)} %`, figure(megabytes), figure(openedMs / 1000)])
    await decoder.session.close()
  }
  printTable(`${path}, ${tokens} tokens`, ["precision", "perplexity", "over fp32", "weights MB", "build and open s"], rows)
}

const startedMs = performance.now()
const paths = process.argv.slice(2)
if (!paths.length) throw new Error("name a model: a GGUF file, or a folder with config.json and safetensors")
printMachine("Perplexity (lower is better)", "the sources, through tsx")
const graphs = mkdtempSync(join(tmpdir(), "rakit-perplexity-"))
try {
  for (const path of paths) await measure(path, graphs)
} finally {
  rmSync(graphs, { recursive: true, force: true })
}
printLoadAfter(startedMs)
