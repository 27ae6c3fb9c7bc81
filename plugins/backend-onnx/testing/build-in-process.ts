import { readFileSync } from "node:fs"
import { openModelSource } from "../architectures/model-source.ts"
import { buildDecoderGraph } from "../onnx/decoder-graph.ts"
import { cachedGraph } from "../onnx/graph-cache.ts"
import type { Precision } from "../onnx/linear.ts"
import { KnownContents } from "../weights/known-contents.ts"

/**
 * Builds a graph in a process of its own and prints how much memory that took: `path graphs
 * precision`.
 */
const [path, graphs, precision] = process.argv.slice(2) as [string, string, Precision]

/** The most memory of this program alone: Linux counts the process that has started it into `maxRSS`. */
const peakKb = (): number => {
  if (process.platform !== "linux") return process.resourceUsage().maxRSS
  return Number(/^VmHWM:\s*(\d+)/m.exec(readFileSync("/proc/self/status", "utf8"))![1])
}

const beforeKb = peakKb()
const source = openModelSource(path)
const contents = source.contents(new KnownContents(graphs), () => {})
cachedGraph({ graphs }, "measured", (graph) =>
  buildDecoderGraph({ graph, config: source.config, weights: source.weights, precision }, () => {}),
)
source.close()
const afterKb = peakKb()
console.log(
  JSON.stringify({
    beforeMb: beforeKb / 1024,
    peakMb: afterKb / 1024,
    fileMb: contents[0]!.bytes / 2 ** 20,
  }),
)
