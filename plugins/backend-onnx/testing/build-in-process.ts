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

const beforeKb = process.resourceUsage().maxRSS
const source = openModelSource(path)
const contents = source.contents(new KnownContents(graphs), () => {})
cachedGraph({ graphs }, "measured", (graph) =>
  buildDecoderGraph({ graph, config: source.config, weights: source.weights, precision }, () => {}),
)
source.close()
const afterKb = process.resourceUsage().maxRSS
console.log(
  JSON.stringify({
    beforeMb: beforeKb / 1024,
    peakMb: afterKb / 1024,
    fileMb: contents[0]!.bytes / 2 ** 20,
  }),
)
