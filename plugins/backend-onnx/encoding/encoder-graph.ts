import type { Value } from "../onnx/graph-builder.ts"
import type { EncoderBatch, EncoderBuilding } from "./encoder-model.ts"
import type { FolderEncoder } from "./families.ts"
import { pooledVectors } from "./space-vectors.ts"
import { spaceDimensions } from "./stacked-rotations.ts"

/** Increment it whenever graphs built by earlier versions must be built again. */
export const encoderGraphVersion = 4

/** What an encoder's graph reads of a batch, as its inputs `input_ids`, `lengths` and `seconds`. */
export const encoderBatch = ({ graph }: EncoderBuilding): EncoderBatch => {
  const ids = graph.input("input_ids", "int64", ["B", "S"])
  const lengths = graph.input("lengths", "int64", ["B"])
  const length = graph.node("Squeeze", [
    graph.node("Shape", [ids], { attributes: { start: 1, end: 2 } }),
    graph.ints([0]),
  ])
  const positions = graph.node("Range", [graph.ints(0), length, graph.ints(1)])
  const inside = (ends: Value) =>
    graph.node("Less", [positions, graph.node("Unsqueeze", [ends, graph.ints([1])])])
  const real = graph.node("Where", [inside(lengths), graph.floats(1), graph.floats(0)])
  const hidden = graph.node("Mul", [graph.node("Sub", [graph.floats(1), real]), graph.floats(-1e9)])
  const mask = graph.node("Unsqueeze", [hidden, graph.ints([1, 2])])
  return {
    ids,
    lengths,
    positions,
    real,
    mask,
    segments: () => {
      const second = graph.input("seconds", "int64", ["B"])
      return graph.node("Where", [inside(second), graph.ints(0), graph.ints(1)])
    },
  }
}

/**
 * Builds the graph of an encoder (Reimers and Gurevych, arXiv 1908.10084).
 * In: `input_ids [B,S]`, padded at the end, `lengths [B]`, and `seconds [B]` where the model has
 * segments of pairs: where the second text begins.
 * Out: `vectors [B,2048]` of norm 1, or `[B,1]` logits of a classifier.
 */
export const buildEncoderGraph = (
  building: EncoderBuilding,
  folder: string,
  { model, head }: FolderEncoder,
): void => {
  const { graph } = building
  const batch = encoderBatch(building)
  const states = model.states(building, batch)
  if (head.type === "score") {
    graph.output("vectors", model.score!(building, batch, states), "float", ["B", 1])
    return
  }
  const vectors = pooledVectors(building, folder, { model, head, batch, states })
  graph.output("vectors", vectors, "float", ["B", spaceDimensions])
}
