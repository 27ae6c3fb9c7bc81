import { statSync } from "node:fs"
import { join } from "node:path"
import { openDecoder } from "../../plugins/backend-onnx/sessions/open-decoder.ts"
import type { DecoderSpec } from "../../plugins/backend-onnx/sessions/open-graphs.ts"
import { perplexity, tokensOfText } from "../../plugins/backend-onnx/testing/perplexity.ts"
import { ModelFileError } from "../../plugins/backend-onnx/weights/model-file-error.ts"

/** What a precision makes of a model. */
export interface Loss {
  /** On a fixed text, where it was asked for. */
  readonly onText?: { readonly tokens: number; readonly perplexity: number }
  /** Weights in memory, in MB. */
  readonly megabytes: number
  /** From the file, with the building of the graph if it is new. */
  readonly openedMs: number
}

/** Opens it in this process; undefined: this CPU can't run `int8-channel`. */
export const lossOf = async (spec: DecoderSpec, withText: boolean): Promise<Loss | undefined> => {
  const startedMs = performance.now()
  const decoder = await openDecoder(spec, () => {}).catch((cause: unknown) => {
    if (spec.precision === "int8-channel" && cause instanceof ModelFileError) return undefined
    throw cause
  })
  if (!decoder) return undefined
  const openedMs = performance.now() - startedMs
  try {
    const megabytes = statSync(join(decoder.folder, "weights.bin")).size / 1e6
    if (!withText) return { megabytes, openedMs }
    const ids = await tokensOfText(decoder)
    const onText = { tokens: ids.length, perplexity: await perplexity(decoder, ids) }
    return { megabytes, openedMs, onText }
  } finally {
    await decoder.session.close()
  }
}
