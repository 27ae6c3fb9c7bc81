import { join } from "node:path"
import { countIn, type Metadata, numberIn, textIn } from "../weights/gguf-metadata.ts"
import { readJson } from "../weights/json-file.ts"
import { Damaged, explaining, ModelFileError, Unsupported } from "../weights/model-file-error.ts"
import { isOn, objectAt } from "./folder-json.ts"

export const peftConfigFile = "adapter_config.json"

/** What to name in place of an adapter that can't be run. */
export const otherAdapter = "Name an adapter of a form that this backend's README lists"

const megabyte = 2 ** 20

/** Refuses the adapter with which those of a model take more bytes than there may be. */
export const refuseBeyond = (
  path: string,
  takes: "take" | "can take",
  bytes: number,
  most: number,
): void => {
  if (bytes > most)
    throw new ModelFileError(
      path,
      `with it the adapters of the model ${takes} ${Math.ceil(bytes / megabyte)} MB, the most is ${Math.floor(most / megabyte)}`,
      "Raise adapterMemoryMb of backend-onnx, or remove adapters",
    )
}

/** Whether a key asks for nothing: null, false, an empty list, object or text. */
const isIdle = (value: unknown): boolean =>
  value === undefined ||
  value === null ||
  value === false ||
  value === "" ||
  (typeof value === "object" && Object.keys(value).length === 0)

/** Keys of a plain LoRA. Others change the arithmetic, or what the files hold. */
const knownKeys: ReadonlySet<string> = new Set([
  "peft_type",
  "r",
  "lora_alpha",
  "use_rslora",
  "rank_pattern",
  "alpha_pattern",
  "bias",
  "init_lora_weights",
  // what was trained, and how
  "auto_mapping",
  "base_model_name_or_path",
  "corda_config",
  "ensure_weight_tying",
  "eva_config",
  "exclude_modules",
  "inference_mode",
  "layers_pattern",
  "layers_to_transform",
  "loftq_config",
  "lora_dropout",
  "lora_ga_config",
  "megatron_config",
  "megatron_core",
  "peft_version",
  "qalora_group_size",
  "revision",
  "runtime_config",
  "target_modules",
  "task_type",
])

/** What the keys of other kinds are called. */
const kinds: Readonly<Record<string, string>> = {
  use_dora: "it is a DoRA",
  modules_to_save: "it holds whole modules beside the LoRA",
  fan_in_fan_out: "its weights are transposed",
  lora_bias: "it has biases",
  use_qalora: "it is a QALoRA",
  alora_invocation_tokens: "it is an activated LoRA",
  target_parameters: "it adapts single parameters, such as experts",
  trainable_token_indices: "it holds embeddings of tokens beside the LoRA",
  layer_replication: "it repeats layers of the model",
}

const plainOnly = "Train a plain LoRA: PEFT's LoraConfig with bias none"

/**
 * They leave the model's own weights as they are. Those that change them (PiSSA, OLoRA and others)
 * need a model that the adapter's files do not hold.
 */
const plainInitials: readonly unknown[] = [true, "gaussian", "eva", "orthogonal"]

const refuse = (json: Metadata): void => {
  if (!json.has("peft_type"))
    throw new Unsupported("it has no 'peft_type': it is no adapter of PEFT", plainOnly)
  const type = textIn(json, "peft_type")
  if (type !== "LORA") throw new Unsupported(`it is a ${type}; this backend runs LORA`, plainOnly)
  for (const [key, value] of json)
    if (!knownKeys.has(key) && !isIdle(value))
      throw new Unsupported(
        `${kinds[key] ?? "it is no plain LoRA"} (${key}), which this backend can't run`,
        plainOnly,
      )
  const bias = json.get("bias")
  if (!isIdle(bias) && bias !== "none")
    throw new Unsupported(`it has biases (bias: ${bias}), which this backend can't add`, plainOnly)
  const initial = json.get("init_lora_weights")
  const known = typeof initial === "string" ? initial.toLowerCase() : initial
  if (!isIdle(initial) && !plainInitials.includes(known))
    throw new Unsupported(
      `it began with '${initial}', not with one of ${plainInitials.join(", ")}: the model's own weights may have been changed too`,
      "Convert it to a plain LoRA (PEFT: save_pretrained with path_initial_model_for_weight_conversion)",
    )
}

/** What Python and JavaScript read alike in a regular expression, for names of modules. */
const sharedSyntax = /^(?:[\w.^$|()*+?-]|\(\?:|\\[.dw]|\[\^?[\w.-]+\]|\{\d+(?:,\d*)?\})+$/

// an expression with more of them could try a module's name for minutes
const mostGroups = 8
const mostRepeats = 4
const mostExpressions = 64

const isSlow = (expression: string): boolean =>
  /\)[*+{]/.test(expression) ||
  expression.split("(").length - 1 > mostGroups ||
  expression.replaceAll("(?:", "").split(/[*+?{]/).length - 1 > mostRepeats

/** A key of a pattern as PEFT reads it: an expression for the whole of a name, or its end after a dot. */
const moduleExpression = (name: string): RegExp | undefined => {
  if (!sharedSyntax.test(name) || isSlow(name)) return undefined
  try {
    return new RegExp(`^(?:.*\\.)?(?:${name})$`)
  } catch {
    return undefined
  }
}

type Pattern = readonly (readonly [RegExp, number])[]

const patternIn = (json: Metadata, key: string): Pattern => {
  const entries: readonly (readonly [string, unknown])[] = [...objectAt(json, key)]
  if (entries.filter(([name]) => !/^[\w.]+$/.test(name)).length > mostExpressions)
    throw new Unsupported(`its ${key} has more than ${mostExpressions} expressions`)
  return entries.map(([name, value]) => {
    const expression = moduleExpression(name)
    if (!expression)
      throw new Unsupported(
        `its ${key} names modules by the expression '${name}', which this backend can't read`,
      )
    if (typeof value !== "number" || !Number.isFinite(value))
      throw new Damaged(`its ${key} gives '${name}' no number`)
    return [expression, value]
  })
}

/** Takes the first that matches, as PEFT does. */
const chosen = (pattern: Pattern, stem: string): number | undefined =>
  pattern.find(([expression]) => expression.test(stem))?.[1]

/**
 * The factor of a module's pair, by the config of a LoRA as PEFT writes it. Throws `Damaged` and
 * `Unsupported` for what is not done here; `origin` is what the config is in.
 */
export const scalesIn = (
  json: Metadata,
  origin: string,
): ((stem: string, rank: number) => number) => {
  refuse(json)
  const r = countIn(json, "r", 2 ** 20)
  const alpha = numberIn(json, "lora_alpha")
  const [ranks, alphas] = [patternIn(json, "rank_pattern"), patternIn(json, "alpha_pattern")]
  const root = isOn(json, "use_rslora", false)
  return (stem, rank) => {
    const promised = chosen(ranks, stem) ?? r
    if (rank !== promised)
      throw new Damaged(
        `the adapter of '${stem}' has the rank ${rank}, its ${origin} says ${promised}`,
      )
    return (chosen(alphas, stem) ?? alpha) / (root ? Math.sqrt(rank) : rank)
  }
}

/** The same of the folder of a LoRA. Throws `ModelFileError`. */
export const peftScales = (folder: string): ((stem: string, rank: number) => number) => {
  const json = readJson(folder, peftConfigFile)
  const path = join(folder, peftConfigFile)
  return explaining(path, () => scalesIn(json, peftConfigFile), otherAdapter)
}
