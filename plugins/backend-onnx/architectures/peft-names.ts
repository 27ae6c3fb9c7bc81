import { Unsupported } from "../weights/model-file-error.ts"
import type { TensorSource } from "../weights/tensor-file.ts"

/** What a tensor's name says: the matrix of the model, and which one of a pair it is. */
export interface PairName {
  readonly stem: string
  readonly side: "a" | "b"
}

/** What PyTorch's wrappers of a model in training put into names: they change no tensor. */
const wrappers: ReadonlySet<string> = new Set([
  "module",
  "_orig_mod",
  "_fsdp_wrapped_module",
  "_checkpoint_wrapped_module",
])

/**
 * Reads a name as PEFT writes it, or as it is in memory, where trainers save that: with the adapter's
 * name before `.weight`, without `base_model.model.`, or with a wrapper's name.
 */
export const parsePeftName = (
  tensor: string,
): (PairName & { readonly adapter: string }) | undefined => {
  const [, module, side, adapter = ""] =
    /^(.+)\.lora_([AB])(?:\.([^.]+))?\.weight$/.exec(tensor) ?? []
  if (module === undefined) return undefined
  const names = module.split(".").filter((name) => !wrappers.has(name))
  const isInPeft = names[0] === "base_model" && names[1] === "model"
  const stem = names.slice(isInPeft ? 2 : 0).join(".")
  return { stem, side: side === "A" ? "a" : "b", adapter }
}

/** Refuses a file of several adapters in memory: one of them is meant, or all together. */
export const refuseSeveral = (source: TensorSource): void => {
  const first = new Map<string, string>()
  for (const name of source.names()) {
    const adapter = parsePeftName(name)?.adapter
    if (adapter !== undefined && !first.has(adapter)) first.set(adapter, name)
  }
  const [one, other] = [...first.values()]
  if (other !== undefined)
    throw new Unsupported(
      `it holds several adapters, by the tensors '${one}' and '${other}'`,
      "Save each in a folder of its own",
    )
}
