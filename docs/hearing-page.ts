import { count, gigabytes, hubOf, readModel, readyMadeFiles } from "./ready-made.ts"
import { table } from "./table.ts"

/** The sizes of a published Whisper, from its config.json. */
interface HearingShape {
  readonly width: number
  readonly encoderLayers: number
  readonly decoderLayers: number
  readonly vocabulary: number
  readonly bins: number
  /** Bytes of a number in the published file. */
  readonly numberBytes: 2 | 4
}

const multilingual = { vocabulary: 51_865, bins: 80, numberBytes: 4 } as const

/** By the names of the files in config/models. */
export const hearingShapes: Readonly<Record<string, HearingShape>> = {
  "whisper-tiny": { width: 384, encoderLayers: 4, decoderLayers: 4, ...multilingual },
  "whisper-base": { width: 512, encoderLayers: 6, decoderLayers: 6, ...multilingual },
  "whisper-small": { width: 768, encoderLayers: 12, decoderLayers: 12, ...multilingual },
  "whisper-large-v3-turbo": {
    ...{ width: 1280, encoderLayers: 32, decoderLayers: 4 },
    ...{ vocabulary: 51_866, bins: 128, numberBytes: 2 },
  },
}

/** The files of transcription models in config/models. */
export const hearingFiles: readonly string[] = readyMadeFiles.filter(
  (file) => readModel(file).entry.task === "transcribe",
)

const scalesOfBlock = 4 / 32
const states = 1500
const contextTokens = 448

const figuresOf = (file: string) => {
  const { width, encoderLayers, decoderLayers, vocabulary, bins, numberBytes } =
    hearingShapes[file.replace(/\.yaml$/, "")]!
  const square = width ** 2
  // attention and feed-forward; the decoder attends twice
  const layers = (12 * encoderLayers + 16 * decoderLayers) * square
  const words = vocabulary * width
  const fine = 3 * width * (bins + width) + (states + contextTokens) * width
  return {
    download: numberBytes * (layers + words + fine),
    // the table of tokens is there twice: rows that are looked up, and the matrix of the logits
    weights: (layers + words) * (1 + scalesOfBlock) + words + 4 * fine,
    sound: 2 * decoderLayers * (states + contextTokens) * width * 4,
  }
}

const megabytes = (bytes: number): string => `${Math.round(bytes / 1e6)} MB`

export const hearingMemoryLine = (file: string): string => {
  const { weights, sound } = figuresOf(file)
  return `# Memory: ${gigabytes(weights)} of weights (int8), and ${megabytes(sound)} for each file that is transcribed at a time, beside its samples (64 kB a second).`
}

const row = (file: string): readonly string[] => {
  const { entry, name, licence } = readModel(file)
  const { download, weights, sound } = figuresOf(file)
  return [
    `[${entry.id}](../config/models/${file})`,
    `${name}: ${hubOf(entry).link}`,
    licence,
    gigabytes(download),
    gigabytes(weights),
    megabytes(sound),
  ]
}

export const hearingSection = (): string => `## Transcription

${table(["include", "model", "licence", "download", "weights in memory", "for each file at a time"], hearingFiles.map(row))}

They are read from the publisher's safetensors, not gated, in 8 bits, by windows of 30 s and ${count(contextTokens)} tokens. None of them has run here, where no hub can be reached: Whisper is checked against transformers on tiny random checkpoints ([backend-onnx](../plugins/backend-onnx/README.md#transcription)). Without any download there is \`svc-dengar\` of [model-commands](../plugins/model-commands): spoken digits and commands in three languages, 5 MB.
`
