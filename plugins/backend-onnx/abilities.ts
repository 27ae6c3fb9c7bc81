import { Effect } from "effect"
import { type ApiError, apiError } from "../../core/errors.ts"
import type { Backend, ModelAbilities } from "../../core/ports/model.ts"
import { type ModelHeader, readModelHeader } from "./architectures/model-source.ts"
import { templateStyle } from "./chat-format/template-style.ts"
import { loraMemory } from "./diffusion/lora/adapted-parts.ts"
import { loraBytes } from "./diffusion/lora/lora-file.ts"
import { imageFamily } from "./diffusion/pipelines/families.ts"
import { folderEncoder, isClassifierFolder } from "./encoding/families.ts"
import type { OnnxDeps } from "./engines.ts"
import { hearingConfig } from "./hearing/hearing-config.ts"
import type { Precision } from "./onnx/linear.ts"
import { layersOfBanks } from "./onnx/native-attention.ts"
import { adapterRoles, sightOf } from "./open-chat-images.ts"
import { hearsSounds } from "./open-chat-sounds.ts"
import { dictationPath } from "./open-dictation.ts"
import { imageAbilities } from "./open-image.ts"
import { crossEncoderWindow, makesNoVectors, wrongPrecision } from "./open-rerank.ts"
import { hearingAbilities } from "./open-transcribe.ts"
import { towerFolder } from "./open-vision-tower.ts"
import {
  type AdapterSpec,
  checkAdapterMemory,
  groupSizes,
  groupsByHeader,
} from "./sessions/adapter-memory.ts"
import { mostBankTokens, windowWithin } from "./sessions/kv-bank.ts"
import { checkExport, exportIn, settledPrecision } from "./sessions/open-decoder.ts"
import { precisionsOf } from "./sessions/open-graphs.ts"
import type { OnnxSettings } from "./settings.ts"
import { realModelPath } from "./weights/gguf-parts.ts"
import type { EncoderOptions } from "./worker/protocol.ts"

const megabyte = 2 ** 20

/** What a chat model of this backend can do beside chatting; thinking depends on its template. */
export const chatCapabilities = (
  thinks: boolean,
  { prefixCacheMb }: Pick<OnnxSettings, "prefixCacheMb">,
  seesImages = false,
): readonly string[] => [
  "tool_use",
  "structured_output",
  ...(thinks ? ["thinking"] : []),
  ...(seesImages ? ["vision"] : []),
  ...(prefixCacheMb > 0 ? ["prompt_caching"] : []),
]

/** What a chat model takes: one that sees is given frames of videos. */
export const modalitiesOf = ({
  sees,
  hears,
}: {
  readonly sees: boolean
  readonly hears: boolean
}): readonly string[] => ["text", ...(sees ? ["image", "video"] : []), ...(hears ? ["audio"] : [])]

type DescribeRequest = Parameters<NonNullable<Backend["describe"]>>[0]

type DecoderOptions = { readonly precision?: Precision; readonly promptPrecision?: Precision }

/** Entries that name the same file are described together. */
const makeHeaders = () => {
  const headers = new Map<string, ModelHeader>()
  return (path: string): ModelHeader => {
    const real = realModelPath(path)
    const header = headers.get(real) ?? readModelHeader(real)
    headers.set(real, header)
    return header
  }
}

/** Refuses LoRAs that `open` would, by their headers. */
const makeRefuseLoras =
  ({ settings, provider }: Pick<OnnxDeps, "settings" | "provider">) =>
  (
    header: ModelHeader,
    { path }: DescribeRequest,
    loras: readonly AdapterSpec[],
    { precision, promptPrecision }: DecoderOptions & { readonly precision: Precision },
  ): void => {
    if (!loras.length) return
    // whether there is a device is not known before `open`, and on one there is a single graph
    const precisions = precisionsOf({
      precision: settledPrecision(path, precision),
      ...(promptPrecision && !provider && { promptPrecision }),
    })
    const most = (settings.adapterMemoryMb * megabyte) / precisions.length
    for (const own of precisions)
      checkAdapterMemory(
        loras,
        header.config,
        groupSizes(groupsByHeader(header, own), header.config),
        most,
      )
  }

/** Reads what models can do from the headers of their files, in milliseconds. */
export const makeDescribe = (
  deps: Pick<OnnxDeps, "settings" | "provider">,
): NonNullable<Backend["describe"]> => {
  const { settings } = deps
  const headerOf = makeHeaders()
  const refuseLoras = makeRefuseLoras(deps)
  const read = (request: DescribeRequest): ModelAbilities | undefined => {
    const { task, path, options, contextTokens } = request
    const of = (window: number, capabilities: readonly string[]): ModelAbilities => ({
      contextTokens: Math.min(contextTokens, window),
      modalities: ["text"],
      capabilities,
    })
    if (task === "transcribe") {
      const window = hearingConfig(path).contextTokens
      return { ...of(window, []), ...hearingAbilities }
    }
    if (task === "image") {
      const { edits, parts = [] } = imageFamily(path)
      const loras = (request.adapters ?? []).filter(({ id }) => !parts.includes(id))
      loraMemory(loras, settings.adapterMemoryMb * megabyte, loraBytes)
      return { contextTokens, ...imageAbilities(edits) }
    }
    if (task === "embed") {
      // refuses what `open` would; longer texts are read in windows
      const { head, config } = folderEncoder(path, (options ?? {}) as EncoderOptions)
      if (head.type === "score") throw new Error(makesNoVectors(path))
      const tower = towerFolder(request, { name: config.name, width: head.width })
      return { ...of(contextTokens, []), modalities: tower ? ["text", "image"] : ["text"] }
    }
    const { precision = "auto", ...other } = (options ?? {}) as DecoderOptions
    if (task === "rerank" && isClassifierFolder(path)) {
      // refuses what `open` would
      folderEncoder(path)
      const wrong = wrongPrecision(path, precision)
      if (wrong !== undefined) throw new Error(wrong)
      return of(crossEncoderWindow(contextTokens), [])
    }
    const loras = task === "chat" ? adapterRoles(request.adapters).loras : []
    const exported = exportIn(path, precision)
    if (exported) {
      checkExport(exported, { ...other, adapters: loras })
      // its sizes are in its graph
      return undefined
    }
    const header = headerOf(path)
    const { config, template } = header
    refuseLoras(header, request, loras, { precision, ...other })
    const most = mostBankTokens(config, layersOfBanks(config))
    const window = windowWithin(config, settings.kvMemoryMb * megabyte, most)
    const thinks = templateStyle(template).thinks
    if (task !== "chat") return of(window, [])
    const listens = hearsSounds(request)
    const sees = !listens && sightOf(request) !== undefined
    const hears = listens || dictationPath(request) !== undefined
    const abilities = of(window, chatCapabilities(thinks, settings, sees))
    return { ...abilities, modalities: modalitiesOf({ sees, hears }) }
  }
  return (request): Effect.Effect<ModelAbilities | undefined, ApiError> =>
    Effect.try({
      try: () => read(request),
      catch: (cause) => apiError("backend_error", (cause as Error).message),
    })
}
