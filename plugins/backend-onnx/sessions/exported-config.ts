import { existsSync, readdirSync, statSync } from "node:fs"
import { dirname, join } from "node:path"
import type { DecoderShape } from "../architectures/decoder-config.ts"
import { limits } from "../architectures/decoder-config.ts"
import { configFile } from "../architectures/folder-config.ts"
import type { Precision } from "../onnx/linear.ts"
import type { Port } from "../onnx/onnx-session.ts"
import { countIn, type Metadata } from "../weights/gguf-metadata.ts"
import { readJson } from "../weights/json-file.ts"
import { Damaged, explaining, ModelFileError, Unsupported } from "../weights/model-file-error.ts"

const eightBits = ["model_int8", "model_quantized", "model_uint8"]

/** File names that exporters use for each precision, best first; other names come after them. */
const namesFor: Readonly<Record<Precision, readonly string[]>> = {
  fp32: ["model", "model_fp32"],
  // the keys and values of fp16 exports are float16, too, which sessions don't take
  fp16: ["model", "model_fp32"],
  int8: eightBits,
  "int8-channel": eightBits,
  auto: eightBits,
  int4: ["model_q4", "model_bnb4"],
}

export interface ExportedModel {
  /** The folder with config.json and tokenizer.json. */
  readonly folder: string
  readonly graph: string
}

const graphsIn = (folder: string): readonly string[] =>
  statSync(folder, { throwIfNoEntry: false })?.isDirectory()
    ? readdirSync(folder)
        .filter((name) => name.endsWith(".onnx"))
        .sort()
    : []

/**
 * Finds the graph in a folder with `onnx/model*.onnx` (or `model*.onnx`), or the file itself;
 * undefined where there is none.
 */
export const findExport = (path: string, precision: Precision): ExportedModel | undefined => {
  if (path.endsWith(".onnx") && statSync(path, { throwIfNoEntry: false })?.isFile()) {
    const beside = dirname(path)
    return { folder: existsSync(join(beside, configFile)) ? beside : dirname(beside), graph: path }
  }
  if (!statSync(path, { throwIfNoEntry: false })?.isDirectory()) return undefined
  for (const place of [join(path, "onnx"), path]) {
    const names = graphsIn(place)
    const wanted =
      [...namesFor[precision], "model"]
        .map((name) => `${name}.onnx`)
        .find((name) => names.includes(name)) ?? names[0]
    if (wanted) return { folder: path, graph: join(place, wanted) }
  }
  return undefined
}

/** Reads a size under the first of the keys that config.json has: models name them differently. */
const firstCount = (json: Metadata, keys: readonly string[], most: number): number | undefined => {
  const key = keys.find((name) => typeof json.get(name) === "number")
  return key === undefined ? undefined : countIn(json, key, most)
}

const known = (value: number | undefined, what: string): number => {
  if (value === undefined) throw new Damaged(`it does not say ${what}`)
  return value
}

const isPast = /^past_key_values\.(\d+)\.(key|value)$/
const others = new Set(["input_ids", "attention_mask", "position_ids", "num_logits_to_keep"])

const refuseOthers = (inputs: readonly Port[], outputs: readonly Port[]): void => {
  for (const { name, type } of inputs) {
    if (!isPast.test(name) && !others.has(name))
      throw new Unsupported(`its graph wants the input '${name}', which this backend does not know`)
    const wanted = isPast.test(name) ? "float32" : "int64"
    if (type !== wanted)
      throw new Unsupported(
        `the input '${name}' of its graph is ${type}, this backend gives ${wanted}`,
        "Name another of the model's graphs, such as onnx/model.onnx",
      )
  }
  for (const name of ["input_ids", "attention_mask"])
    if (!inputs.some((port) => port.name === name))
      throw new Unsupported(`its graph has no input '${name}'`)
  if (outputs.find(({ name }) => name === "logits")?.type !== "float32")
    throw new Unsupported("its graph has no output 'logits' of float32")
}

/**
 * The sizes of an exported graph: from its inputs and outputs where they are fixed, else from
 * config.json. Throws `ModelFileError`.
 */
export const exportedShape = (
  { folder, graph }: ExportedModel,
  inputs: readonly Port[],
  outputs: readonly Port[],
): DecoderShape => {
  const json = readJson(folder, configFile)
  explaining(graph, () => refuseOthers(inputs, outputs))
  const past = inputs.filter(({ name }) => isPast.test(name))
  if (!past.length || past.length % 2)
    throw new ModelFileError(
      graph,
      "its graph takes no keys and values of the past ('past_key_values.0.key' ...)",
      "Name an export with past",
    )
  for (const { name } of past) {
    const present = name.replace("past_key_values", "present")
    if (!outputs.some((port) => port.name === present))
      throw new ModelFileError(
        graph,
        `its graph has no output '${present}'`,
        "Name an export with past",
      )
  }
  const fixed = (port: Port | undefined, axis: number) =>
    typeof port?.shape[axis] === "number" && port.shape[axis] > 0 ? port.shape[axis] : undefined
  return explaining(join(folder, configFile), () => {
    const heads = firstCount(json, ["num_attention_heads", "n_head"], limits.heads)
    const width = firstCount(json, ["hidden_size", "n_embd"], limits.width)
    const perHead =
      firstCount(json, ["head_dim"], limits.headSize) ??
      (heads && width ? width / heads : undefined)
    return {
      layers: past.length / 2,
      kvHeads: known(
        fixed(past[0], 1) ?? firstCount(json, ["num_key_value_heads"], limits.heads) ?? heads,
        "how many heads it has for keys",
      ),
      headSize: known(fixed(past[0], 3) ?? perHead, "how large a head is"),
      vocabulary: known(
        fixed(
          outputs.find(({ name }) => name === "logits"),
          2,
        ) ?? firstCount(json, ["vocab_size"], 2 ** 24),
        "how large its vocabulary is",
      ),
      contextTokens: known(
        firstCount(json, ["max_position_embeddings", "n_positions", "n_ctx"], limits.contextTokens),
        "how long its window is ('max_position_embeddings')",
      ),
    }
  })
}
