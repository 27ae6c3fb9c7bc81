import { existsSync } from "node:fs"
import { join } from "node:path"
import { objectAt } from "../architectures/folder-json.ts"
import { isSavedAsItsKind, sentenceConfigFile } from "../tokenizer/sentence-folder.ts"
import { type Metadata, textIn, textOr } from "../weights/gguf-metadata.ts"
import { readJson } from "../weights/json-file.ts"
import { Damaged, explaining } from "../weights/model-file-error.ts"
import { instructionMark, type Prompts } from "./embed-job.ts"

const maxPrompts = 100
const maxCharacters = 2_000

const namedIn = (json: Metadata): Readonly<Record<string, string>> => {
  const prompts = objectAt(json, "prompts")
  if (prompts.size > maxPrompts) throw new Damaged(`it has ${prompts.size} prompts`)
  const named = [...prompts.keys()].map((name) => [name, textIn(prompts, name)] as const)
  const long = named.find(([, text]) => text.length > maxCharacters)
  if (long) throw new Damaged(`its prompt '${long[0]}' has ${long[1].length} characters`)
  return Object.fromEntries(named)
}

/** Prompts with an instruction: of Qwen3-Embedding and others since E5-Mistral, of EmbeddingGemma. */
const instructed = [/^(Instruct: )[^\n]+(\nQuery: ?)$/, /^(task: )[^|]+( \| query: )$/]

const templateIn = (prompts: readonly string[]): string | undefined => {
  for (const prompt of prompts)
    for (const pattern of instructed) {
      const found = pattern.exec(prompt)
      if (found) return `${found[1]}${instructionMark}${found[2]}`
    }
  return undefined
}

const none: Prompts = { byDefault: "", named: {} }

/** Reads the prompts of a folder; none where there is no such file. Throws `ModelFileError`. */
export const promptsIn = (folder: string): Prompts => {
  if (!existsSync(join(folder, sentenceConfigFile))) return none
  const json = readJson(folder, sentenceConfigFile)
  return explaining(join(folder, sentenceConfigFile), () => {
    const named = namedIn(json)
    const name = textOr(json, "default_prompt_name", "")
    if (name && !Object.hasOwn(named, name))
      throw new Damaged(`its 'default_prompt_name' is '${name}', which is no prompt of it`)
    return {
      byDefault: name ? named[name]! : "",
      named,
      instructionTemplate: templateIn(Object.values(named)),
    }
  })
}

/**
 * Reads the prompts of a cross-encoder, of which the default one is before each query; none where
 * sentence-transformers did not save the folder as one. Throws `ModelFileError`.
 */
export const pairPromptsIn = (folder: string): Prompts =>
  isSavedAsItsKind(folder) ? promptsIn(folder) : none

/**
 * What comes before each text of a request: the prompt that its instruction names, the instruction
 * as the model's template has it, or with a space behind it, so that no word spans both.
 */
export const promptFor = (
  { byDefault, named, instructionTemplate }: Prompts,
  instruction: string | undefined,
): string => {
  if (!instruction) return byDefault
  if (Object.hasOwn(named, instruction)) return named[instruction]!
  if (instructionTemplate) return instructionTemplate.replace(instructionMark, () => instruction)
  return /\s$/.test(instruction) ? instruction : `${instruction} `
}
