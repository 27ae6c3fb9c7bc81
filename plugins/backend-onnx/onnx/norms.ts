import type { Building } from "./building.ts"
import type { Value } from "./graph-builder.ts"

/** RMSNorm (Zhang and Sennrich, arXiv 1910.07467) over the last axis. */
export const plainNorm = (
  { graph, config }: Pick<Building, "graph" | "config">,
  value: Value,
  weights: Float32Array,
): Value =>
  graph.node("SimplifiedLayerNormalization", [value, graph.floats([...weights])], {
    attributes: { axis: -1, epsilon: { float: config.normEpsilon }, stash_type: 1 },
  })
