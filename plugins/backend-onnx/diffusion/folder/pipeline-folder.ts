import { join } from "node:path"
import { configFile } from "../../architectures/folder-config.ts"
import { type Metadata, textIn } from "../../weights/gguf-metadata.ts"
import { readJson } from "../../weights/json-file.ts"
import { explaining, ModelFileError, Unsupported } from "../../weights/model-file-error.ts"

/**
 * A pipeline's folder with its text encoder. Of Iris an adapter of the entry with this id is that
 * part of the model, and no LoRA.
 */
export const textEncoderId = "text_encoder"

const indexFile = "model_index.json"

/** A folder in the layout of diffusers: a folder for each part, and which class each has. */
export interface PipelineFolder {
  readonly path: string
  /** Class of the pipeline, such as `FluxPipeline`. */
  readonly family: string
  /** The class of a part, such as `T5EncoderModel`; undefined: the pipeline has none. */
  classOf(part: string): string | undefined
  /** A setting of the pipeline itself, such as `is_distilled`. */
  setting(name: string): unknown
}

/** Reads model_index.json. Throws `ModelFileError`. */
export const openPipelineFolder = (path: string): PipelineFolder => {
  const index = readJson(path, indexFile)
  const family = explaining(join(path, indexFile), () => textIn(index, "_class_name"))
  return {
    path,
    family,
    classOf: (part) => {
      const entry: unknown = index.get(part)
      const name: unknown = Array.isArray(entry) ? entry[1] : undefined
      return typeof name === "string" ? name : undefined
    },
    setting: (name) => index.get(name),
  }
}

/**
 * The folder of a part, whose class must be one of `classes`, and its config.json. Throws
 * `ModelFileError`.
 */
export const partIn = (
  folder: PipelineFolder,
  part: string,
  classes: readonly string[],
): { readonly path: string; readonly className: string; readonly config: Metadata } => {
  const className = folder.classOf(part)
  if (className === undefined)
    throw new ModelFileError(join(folder.path, indexFile), `it has no '${part}'`)
  explaining(join(folder.path, indexFile), () => {
    if (!classes.includes(className))
      throw new Unsupported(
        `its '${part}' is a ${className}; a ${folder.family} of this backend has ${classes.join(" or ")}`,
      )
  })
  const path = join(folder.path, part)
  return { path, className, config: readJson(path, configFile) }
}

/** The content of scheduler_config.json. Throws `ModelFileError`. */
export const schedulerIn = ({ path }: PipelineFolder): Metadata =>
  readJson(join(path, "scheduler"), "scheduler_config.json")
