import { existsSync } from "node:fs"
import { join } from "node:path"
import { type Metadata, present, textOr, textsIn } from "../weights/gguf-metadata.ts"
import { readJson } from "../weights/json-file.ts"
import { explaining } from "../weights/model-file-error.ts"

/** Whether a config.json is that of a sequence classifier. */
export const isClassifier = (json: Metadata): boolean =>
  present(json, "architectures") &&
  textsIn(json, "architectures").some((name) => name.endsWith("ForSequenceClassification"))

/** What sentence-transformers stores of a whole model: its class, its prompts, a shorter width. */
export const sentenceConfigFile = "config_sentence_transformers.json"
/** The parts of a model, in their order. */
export const partsFile = "modules.json"

const byDefault = "SentenceTransformer"

const savedKind = (folder: string): string =>
  existsSync(join(folder, sentenceConfigFile))
    ? explaining(join(folder, sentenceConfigFile), () =>
        textOr(readJson(folder, sentenceConfigFile), "model_type", byDefault),
      )
    : byDefault

/**
 * Whether sentence-transformers saved a folder as the kind of model that it is: only then it reads
 * its own files there. Throws `ModelFileError`.
 */
export const isSavedAsItsKind = (folder: string): boolean => {
  if (!existsSync(join(folder, partsFile))) return false
  const config = "config.json"
  const scores = explaining(join(folder, config), () => isClassifier(readJson(folder, config)))
  return savedKind(folder) === (scores ? "CrossEncoder" : byDefault)
}
