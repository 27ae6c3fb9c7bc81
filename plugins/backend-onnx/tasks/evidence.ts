import { cpus } from "node:os"
import type { Adapter } from "../../../core/ports/model.ts"
import { kernelsName } from "../onnx/kernels.ts"

const processor = cpus()[0]?.model ?? "unknown"

/**
 * What kind of processor answers are computed by, and the kernels that it has the instructions of:
 * others may round otherwise, and a name such as `AMD EPYC` stands for several.
 */
export const cpu = (): string => [processor, kernelsName() ?? "onnxruntime"].join(", ")

/** Digest of all that answers are computed from; null where they can't be repeated. */
export const digestFor = (
  {
    digest,
    adapterDigests = {},
  }: {
    readonly digest?: string | undefined
    readonly adapterDigests?: Readonly<Record<string, string>>
  },
  adapter?: Adapter,
  tower?: string,
): string | null => {
  if (digest === undefined) return null
  const parts = [...(adapter ? [adapterDigests[adapter.id]] : []), ...(tower ? [tower] : [])]
  return [digest, ...parts].join("+")
}
