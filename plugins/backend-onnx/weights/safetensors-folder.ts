import { existsSync } from "node:fs"
import { join } from "node:path"
import { readJson } from "./json-file.ts"
import { explaining, ModelFileError } from "./model-file-error.ts"
import { withScales } from "./quantized-tensors.ts"
import { openSafetensors } from "./safetensors.ts"
import { ShardedTensors } from "./sharded-tensors.ts"
import type { TensorFile, TensorSource } from "./tensor-file.ts"

const maxShards = 1_000

// names of transformers and of diffusers, and how they call files of 16 bits
const stems = ["model", "diffusion_pytorch_model"]
const singleFiles = [
  ...stems.map((stem) => `${stem}.safetensors`),
  ...stems.map((stem) => `${stem}.fp16.safetensors`),
]
const indexFiles = stems.flatMap((stem) => [
  `${stem}.safetensors.index.json`,
  `${stem}.safetensors.index.fp16.json`,
])

/** Names of the shards, which must be files of the folder itself. */
const shardsIn = (folder: string, indexFile: string): readonly string[] => {
  const index = readJson(folder, indexFile)
  const map = index.get("weight_map") as unknown
  if (typeof map !== "object" || map === null || Array.isArray(map))
    throw new ModelFileError(join(folder, indexFile), "it has no 'weight_map'")
  const files = [...new Set(Object.values(map))]
  if (files.length > maxShards)
    throw new ModelFileError(
      join(folder, indexFile),
      `it names ${files.length} files, the most is ${maxShards}`,
    )
  return files.map((file) => {
    if (typeof file !== "string" || !/^[\w.-]+\.safetensors$/.test(file))
      throw new ModelFileError(
        join(folder, indexFile),
        `it names '${file}', which is no file of weights`,
      )
    return file
  })
}

const firstIn = (folder: string, names: readonly string[]): string | undefined =>
  names.find((name) => existsSync(join(folder, name)))

/** Whether a folder has weights that a graph can be built from. */
export const hasWeights = (folder: string): boolean =>
  firstIn(folder, [...singleFiles, ...indexFiles]) !== undefined

/** Names of the files that hold a folder's weights. */
export const weightFilesIn = (folder: string): readonly string[] => {
  const single = firstIn(folder, singleFiles)
  if (single !== undefined) return [single]
  const index = firstIn(folder, indexFiles)
  if (index !== undefined) return shardsIn(folder, index)
  throw new ModelFileError(folder, `it has neither ${singleFiles[0]} nor ${indexFiles[0]}`)
}

/** Opens the weights of a folder, in one file or in shards. Throws `ModelFileError`. */
export const openSafetensorsFolder = (folder: string): TensorSource => {
  const opened: TensorFile[] = []
  try {
    for (const file of weightFilesIn(folder)) opened.push(openSafetensors(join(folder, file)))
    const source = opened.length === 1 ? opened[0]! : new ShardedTensors(folder, opened)
    return explaining(source.path, () => withScales(source))
  } catch (cause) {
    for (const file of opened) file.close()
    throw cause
  }
}
