import { existsSync } from "node:fs"
import { join } from "node:path"
import { type Metadata, present, textOr, textsIn } from "../weights/gguf-metadata.ts"
import { readJson } from "../weights/json-file.ts"
import { explaining } from "../weights/model-file-error.ts"

/** Whether a config.json is that of a sequence classifier. */
export const isClassifier = (json: Metadata): boolean =>
  present(json, "architectures") &&
  textsIn(json, "architectures").some((name) => name.endsWith("ForSequenceClassification"))

/** Prompts, and the kind of model that sentence-transformers saved. */
export const promptsFile = "config_sentence_transformers.json"

const byDefault = "SentenceTransformer"

const savedKind = (folder: string): string =>
  existsSync(join(folder, promptsFile))
    ? explaining(join(folder, promptsFile), () =>
        textOr(readJson(folder, promptsFile), "model_type", byDefault),
      )
    : byDefault

/**
 * Whether sentence-transformers saved a folder as the kind of model that it is: only then it reads
 * its own files there. Throws `ModelFileError`.
 */
export const isSavedAsItsKind = (folder: string): boolean => {
  if (!existsSync(join(folder, "modules.json"))) return false
  const config = "config.json"
  const scores = explaining(join(folder, config), () => isClassifier(readJson(folder, config)))
  return savedKind(folder) === (scores ? "CrossEncoder" : byDefault)
}
