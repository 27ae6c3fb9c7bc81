// How much a model loses by quantization: perplexity on a fixed text. `node --import tsx
// bench/perplexity.ts model.gguf [more.gguf or folders ...]`
import { mkdtempSync, rmSync, statSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { openDecoder } from "../plugins/backend-onnx/sessions/open-decoder.ts"
import { perplexity, tokensOfText } from "../plugins/backend-onnx/testing/perplexity.ts"
import { printLoadAfter, printMachine } from "./measure/machine.ts"
import { figure, printTable } from "./measure/table.ts"

const measure = async (path: string, graphs: string): Promise<void> => {
  const found = new Map<string, number>()
  const rows: string[][] = []
  let tokens = 0
  for (const precision of ["fp32", "auto", "int8", "int8-channel", "int4"] as const) {
    const startedMs = performance.now()
    const decoder = await openDecoder({ path, graphs, precision, threads: 2 }, () => {})
    const openedMs = performance.now() - startedMs
    const ids = await tokensOfText(decoder)
    tokens = ids.length
    const value = await perplexity(decoder, ids)
    found.set(precision, value)
    const exact = found.get("fp32")!
    const megabytes = statSync(join(decoder.folder, "weights.bin")).size / 1e6
    rows.push([
      precision,
      value.toFixed(3),
      `${(100 * (value / exact - 1)).toFixed(2)} %`,
      figure(megabytes),
      figure(openedMs / 1000),
    ])
    await decoder.session.close()
  }
  printTable(
    `${path}, ${tokens} tokens`,
    ["precision", "perplexity", "over fp32", "weights MB", "build and open s"],
    rows,
  )
}

const startedMs = performance.now()
const paths = process.argv.slice(2)
if (!paths.length)
  throw new Error("name a model: a GGUF file, or a folder with config.json and safetensors")
printMachine("Perplexity (lower is better)", "the sources, through tsx")
const graphs = mkdtempSync(join(tmpdir(), "rakit-perplexity-"))
try {
  for (const path of paths) await measure(path, graphs)
} finally {
  rmSync(graphs, { recursive: true, force: true })
}
printLoadAfter(startedMs)
