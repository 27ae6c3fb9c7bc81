import type { EncoderBuilding } from "../encoding/encoder-model.ts"
import { activated, bidirectional, dense, layerNorm, vector } from "../encoding/encoder-parts.ts"
import type { Value } from "../onnx/graph-builder.ts"
import type { QwenSight, QwenTower } from "./qwen-config.ts"

const epsilon = 1e-6

/** Numbers of a square: its three colours, each of all frames. */
export const squareNumbers = ({ patch, frames }: QwenTower): number => 3 * frames * patch ** 2

/** Layer norm, or the norm without means of the second generation. */
const norm = (building: EncoderBuilding, tower: QwenTower, name: string, x: Value): Value =>
  tower.activation === undefined
    ? building.graph.node(
        "SimplifiedLayerNormalization",
        [x, vector(building, `${name}.weight`, tower.width)],
        { attributes: { axis: -1, epsilon: { float: epsilon }, stash_type: 1 } },
      )
    : layerNorm(building, name, x, { width: tower.width, epsilon })

/** Bytes of squares as normalized floats: colours are one after the other. */
const normalized = (
  { graph }: EncoderBuilding,
  { tower, preprocessing: { mean, std, rescale } }: QwenSight,
): Value => {
  const each = squareNumbers(tower) / 3
  const repeated = (of: (channel: number) => number) =>
    graph.floats(Array.from({ length: 3 * each }, (_, at) => of(Math.floor(at / each))))
  const scaled = graph.node("Mul", [
    graph.node("Cast", ["pixels"], { attributes: { to: 1 } }),
    repeated((channel) => rescale / std[channel]!),
  ])
  return graph.node("Add", [scaled, repeated((channel) => -mean[channel]! / std[channel]!)])
}

/** Hides the squares of other windows, `[1,1,N,N]`. */
const windowMask = ({ graph }: EncoderBuilding): Value => {
  const side = (axis: number) => graph.node("Unsqueeze", ["windows", graph.ints([axis])])
  const same = graph.node("Equal", [side(1), side(0)])
  const hidden = graph.node("Where", [same, graph.floats(0), graph.floats(-1e9)])
  return graph.node("Unsqueeze", [hidden, graph.ints([0, 1])])
}

const attended = (
  building: EncoderBuilding,
  tower: QwenTower,
  name: string,
  x: Value,
  mask: Value | undefined,
): Value => {
  const { graph } = building
  const { width, heads } = tower
  const all = dense(building, `${name}.qkv`, x, { rows: 3 * width, columns: width })
  const [q, k, v] = graph.nodeWith(
    "Split",
    [all],
    ["q", "k", "v"].map(() => graph.name("part")),
    { attributes: { axis: -1 } },
  )
  const rotate = (part: Value) =>
    graph.fused("RotaryEmbedding", [part, "places", "cos", "sin"], {
      num_heads: heads,
      interleaved: 0,
    })
  const states = bidirectional(building, [rotate(q!), rotate(k!), v!], tower, mask)
  return dense(building, `${name}.proj`, states, { rows: width, columns: width })
}

const fed = (building: EncoderBuilding, tower: QwenTower, name: string, x: Value): Value => {
  const { graph } = building
  const { width, feedForward, activation } = tower
  const wide = { rows: feedForward, columns: width }
  const narrow = { rows: width, columns: feedForward }
  if (activation !== undefined) {
    const hidden = activated(building, activation, dense(building, `${name}.fc1`, x, wide))
    return dense(building, `${name}.fc2`, hidden, narrow)
  }
  const gate = dense(building, `${name}.gate_proj`, x, wide)
  const open = graph.node("Mul", [gate, graph.node("Sigmoid", [gate])])
  const up = dense(building, `${name}.up_proj`, x, wide)
  return dense(building, `${name}.down_proj`, graph.node("Mul", [open, up]), narrow)
}

/** Squares side by side become one token, `[1,N,width]` to `[1,tokens,width of the decoder]`. */
const merged = (building: EncoderBuilding, { tower, width }: QwenSight, states: Value): Value => {
  const { graph } = building
  const wide = tower.width * tower.merge ** 2
  const normed = norm(building, tower, "merger.ln_q", states)
  const together = graph.node("Reshape", [normed, graph.ints([1, -1, wide])])
  const hidden = dense(building, "merger.mlp.0", together, { rows: wide, columns: wide })
  const active = activated(building, "gelu", hidden)
  return dense(building, "merger.mlp.2", active, { rows: width, columns: wide })
}

/**
 * The graph by which a model of Qwen-VL sees one picture of N squares, those of a token one after
 * the other. In: `pixels [1,N,3*frames*patch*patch]`, bytes; `places [1,N]`, 0 to N - 1; `cos` and
 * `sin [N,headSize/2]` of their rows and columns; `windows [N]`, the number of each one's window, where
 * there are any. Out: `vectors [1,tokens,width]`.
 */
export const buildQwenGraph = (building: EncoderBuilding, config: QwenSight): void => {
  const { graph } = building
  const { tower, width } = config
  const pairs = tower.width / tower.heads / 2
  graph.input("pixels", "uint8", [1, "N", squareNumbers(tower)])
  graph.input("places", "int64", [1, "N"])
  graph.input("cos", "float", ["N", pairs])
  graph.input("sin", "float", ["N", pairs])
  if (tower.window !== undefined) graph.input("windows", "int64", ["N"])
  const mask = tower.window === undefined ? undefined : windowMask(building)
  const size = { rows: tower.width, columns: squareNumbers(tower) }
  let states = dense(building, "patch_embed.proj", normalized(building, config), size)
  for (let layer = 0; layer < tower.layers; layer++) {
    const name = `blocks.${layer}`
    const before = norm(building, tower, `${name}.norm1`, states)
    const own = tower.whole.includes(layer) ? undefined : mask
    const between = graph.node("Add", [
      states,
      attended(building, tower, `${name}.attn`, before, own),
    ])
    const after = norm(building, tower, `${name}.norm2`, between)
    states = graph.node("Add", [between, fed(building, tower, `${name}.mlp`, after)])
  }
  graph.output("vectors", merged(building, config, states), "float", [1, "T", width])
}
