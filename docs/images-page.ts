import { count, gigabytes, hubOf, readModel, readyMadeFiles } from "./ready-made.ts"
import { table } from "./table.ts"

/** Millions of parameters of a part, by how the engine keeps them. */
interface PartSize {
  /** Matrices of linear layers, in blocks of 32. */
  readonly linear: number
  /** Kernels of convolutions, 16 bits. */
  readonly kernels?: number
  /** In 32 bits in all precisions but fp16. */
  readonly isFine?: true
  /** Tables that tokens are looked up in, 8 bits. */
  readonly tables?: number
  /** A table of positions, which the engine makes again. */
  readonly unkept?: number
}

interface ImageShape {
  /** Bytes of a number in the published files. */
  readonly numberBytes: 2 | 4
  readonly parts: Readonly<Record<string, PartSize>>
}

const clipL: PartSize = { linear: 85, tables: 38 }
const t5: PartSize = { linear: 4630, tables: 132 }
const sd3: PartSize = { linear: 2243, unkept: 226 }
const vae: PartSize = { linear: 2, kernels: 82, isFine: true }

/** Counted by diffusers and transformers, by the names of the files in config/models. */
export const imageShapes: Readonly<Record<string, ImageShape>> = {
  "stable-diffusion-v1-5": {
    numberBytes: 2,
    parts: { unet: { linear: 295, kernels: 565 }, text: clipL, vae },
  },
  "sd-turbo": {
    numberBytes: 2,
    parts: { unet: { linear: 301, kernels: 565 }, text: { linear: 290, tables: 51 }, vae },
  },
  "lcm-dreamshaper": {
    numberBytes: 4,
    parts: { unet: { linear: 295, kernels: 565 }, text: clipL, vae },
  },
  "sd3.5-medium": {
    numberBytes: 2,
    parts: { transformer: sd3, clipL, clipG: { linear: 631, tables: 64 }, t5, vae },
  },
  "flux.1-schnell": {
    numberBytes: 2,
    parts: { transformer: { linear: 11_891 }, clipL, t5, vae },
  },
  "flux.2-klein-4b": {
    numberBytes: 2,
    parts: { transformer: { linear: 3876 }, text: { linear: 3633, tables: 389 }, vae },
  },
}

/** The files of image models in config/models. */
export const imageFiles: readonly string[] = readyMadeFiles.filter(
  (file) => readModel(file).entry.task === "image",
)

const million = 1e6
const parametersOf = ({ linear, kernels = 0, tables = 0, unkept = 0 }: PartSize) =>
  linear + kernels + tables + unkept
const weightsOf = ({ linear, kernels = 0, tables = 0, isFine }: PartSize, bits: 4 | 8 | 16) => {
  if (bits === 16) return 2 * (linear + kernels + tables)
  if (isFine) return 4 * (linear + kernels + tables)
  return linear * (bits / 8 + 4 / 32) + kernels * 2 + tables
}

const figuresOf = (file: string) => {
  const { parts, numberBytes } = imageShapes[file.replace(/\.yaml$/, "")]!
  const all = Object.values(parts)
  const sum = (of: (part: PartSize) => number) =>
    all.reduce((total, part) => total + of(part) * million, 0)
  const most = (bits: 4 | 8 | 16) => Math.max(...all.map((part) => weightsOf(part, bits))) * million
  return {
    download: sum(parametersOf) * numberBytes,
    fp16: sum((part) => weightsOf(part, 16)),
    int8: sum((part) => weightsOf(part, 8)),
    int4: sum((part) => weightsOf(part, 4)),
    offload16: most(16),
    offload8: most(8),
    offload4: most(4),
  }
}

export const imageMemoryLine = (file: string): string => {
  const { int8, offload8, offload4 } = figuresOf(file)
  return `# Memory: ${gigabytes(int8)} of weights (int8), ${gigabytes(offload8)} with offload (${gigabytes(offload4)} in int4), and what a picture takes.`
}

const row = (file: string): readonly string[] => {
  const { entry, name, licence } = readModel(file)
  const { download, fp16, int8, int4, offload16, offload8, offload4 } = figuresOf(file)
  return [
    `[${entry.id}](../config/models/${file})`,
    `${name}: ${hubOf(entry).link}`,
    licence,
    entry.description,
    count(entry.limits.contextTokens),
    `${entry.options?.steps ?? 4}, ${entry.options?.guidanceScale ?? 1}`,
    ...[download, fp16, int8, int4].map(gigabytes),
    [offload16, offload8, offload4].map(gigabytes).join(", "),
  ]
}

/** The section of docs/models.md about image models. */
export const imagesSection = (): string => `## Images

${table(["include", "model", "licence", "for", "tokens of a prompt", "steps and guidance by default", "download", "weights in memory, fp16", "int8", "int4", "largest part (`offload: true`), fp16, int8 and int4"], imageFiles.map(row))}

They need endpoint-images, and \`price: {image: ..}\` where calls are billed. In int8 and int4 matrices are kept in blocks of 32 numbers with a scale each, tables in 8 bits, kernels of convolutions in 16, the VAE in 32; in fp16 all of them in 16 bits. The files are read in the layout of diffusers. With \`offload: true\` one part is in memory at a time, and each picture loads them again. Memory is computed from the parameters; the numbers of a picture on its way come on top. These models were not run here: what was tested are tiny checkpoints of their classes.
`
