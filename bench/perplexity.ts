// How much a model loses by quantization: perplexity on a fixed text. `node --import tsx
// bench/perplexity.ts model.gguf [more.gguf or folders ...]`
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { lossOf } from "./chat/loss.ts"
import { printLoadAfter, printMachine } from "./measure/machine.ts"
import { figure, printTable } from "./measure/table.ts"

const measure = async (path: string, graphs: string): Promise<void> => {
  const rows: string[][] = []
  let [tokens, exact] = [0, 0]
  for (const precision of ["fp32", "auto", "int8", "int8-channel", "int4"] as const) {
    const loss = await lossOf({ path, graphs, precision, threads: 2 }, true)
    if (!loss) {
      rows.push([precision, "not by this CPU"])
      continue
    }
    const { megabytes, openedMs, onText } = loss
    const { perplexity } = onText!
    if (precision === "fp32") [tokens, exact] = [onText!.tokens, perplexity]
    rows.push([
      precision,
      perplexity.toFixed(3),
      `${(100 * (perplexity / exact - 1)).toFixed(2)} %`,
      figure(megabytes),
      figure(openedMs / 1000),
    ])
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
