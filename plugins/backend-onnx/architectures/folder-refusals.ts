import { type Metadata, numberOr, present, textOr } from "../weights/gguf-metadata.ts"
import { Unsupported } from "../weights/model-file-error.ts"
import type { Architecture } from "./decoder-config.ts"
import { familyParts } from "./families.ts"
import { objectAt } from "./folder-json.ts"

/** Weights in 8 bits with a scale for each row, which are read as they are. */
const areIntQuantized = (quantization: Metadata): boolean =>
  textOr(quantization, "quant_method", "") === "compressed-tensors" &&
  textOr(quantization, "format", "") === "int-quantized"

/** Throws `Unsupported` where config.json names what no graph of this backend computes. */
export const refuseOthers = (json: Metadata, architecture: Architecture): void => {
  const quantization = objectAt(json, "quantization_config")
  if (quantization.size && !areIntQuantized(quantization))
    throw new Unsupported(
      `its weights are quantized in a way that this backend can't read ('quantization_config': '${quantization.get("quant_method")}')`,
      "Name the model's plain files, or a GGUF file",
    )
  const { activation } = familyParts(architecture, 1)
  const wanted = activation === "gelu" ? "gelu_pytorch_tanh" : "silu"
  for (const key of ["hidden_act", "hidden_activation"])
    if (present(json, key) && json.get(key) !== wanted)
      throw new Unsupported(`'${key}' is '${json.get(key)}'; this backend runs '${wanted}'`)
  for (const key of [
    "final_logit_softcapping",
    "attn_logit_softcapping",
    "use_bidirectional_attention",
  ])
    if (json.get(key))
      throw new Unsupported(`'${key}' is ${json.get(key)}, which this backend can't do`)
  // absent is true, and null is false, as in transformers
  if (json.has("is_causal") && json.get("is_causal") !== true)
    throw new Unsupported(
      `'is_causal' is ${json.get("is_causal")}: its tokens see what follows them, which this backend can't do here`,
    )
  const part = numberOr(json, "partial_rotary_factor", 1)
  if (architecture !== "phi3" && part !== 1)
    throw new Unsupported(
      `'partial_rotary_factor' is ${part}: it rotates a part of its dimensions, which this backend can't do`,
    )
}
