import { existsSync } from "node:fs"
import { join } from "node:path"
import type { Json } from "../../../core/json.ts"
import type { Metadata } from "../weights/gguf-metadata.ts"
import { readJson, readTextFile } from "../weights/json-file.ts"
import { Damaged, explaining, ModelFileError } from "../weights/model-file-error.ts"
import { type FolderTokenizer, readTokenizerJson } from "./folder-tokenizer.ts"
import { advisedBy, type ChatLanguage, endsByName } from "./vocabulary.ts"

export const tokenizerFile = "tokenizer.json"
const tokenizerConfigFile = "tokenizer_config.json"
const generationFile = "generation_config.json"
const templateFile = "chat_template.jinja"
/** The one for requests with tools, as transformers names both. */
const toolTemplateName = "tool_use"
const toolTemplateFile = `additional_chat_templates/${toolTemplateName}.jinja`
/** Where processors of models that read images had it. */
const oldTemplateFile = "chat_template.json"

/** Files of tokenizer and chat template; a change of any of them makes another graph. */
export const languageFiles = [
  tokenizerFile,
  tokenizerConfigFile,
  generationFile,
  templateFile,
  toolTemplateFile,
  oldTemplateFile,
]

const maxTokenizerBytes = 128 * 2 ** 20

const optionalJson = (folder: string, name: string): Metadata =>
  existsSync(join(folder, name)) ? readJson(folder, name) : new Map()

const entry = (value: unknown, key: string): unknown =>
  typeof value === "object" && value !== null
    ? (value as Readonly<Record<string, unknown>>)[key]
    : undefined

/** A token's text, given as a string or in an object. */
const tokenText = (config: Metadata, key: string): string => {
  const value: unknown = config.get(key)
  const text = typeof value === "string" ? value : entry(value, "content")
  return typeof text === "string" ? text : ""
}

type Templates = Pick<ChatLanguage, "template" | "toolTemplate">

const templatesOf = (template: string, tool: unknown): Templates => ({
  template,
  ...(typeof tool === "string" && { toolTemplate: tool }),
})

/** The chat template: one, or several by name, of which files count before tokenizer_config.json. */
const templatesIn = (folder: string, config: Metadata): Templates => {
  const textOf = (file: string) =>
    existsSync(join(folder, file)) ? readTextFile(folder, file) : undefined
  const file = textOf(templateFile)
  if (file !== undefined) return templatesOf(file, textOf(toolTemplateFile))
  const value: unknown =
    config.get("chat_template") ?? optionalJson(folder, oldTemplateFile).get("chat_template")
  // of two with one name transformers keeps the last
  const named = (name: string) =>
    Array.isArray(value)
      ? entry(
          (value as readonly unknown[]).findLast((item) => entry(item, "name") === name),
          "template",
        )
      : undefined
  const text = typeof value === "string" ? value : named("default")
  if (typeof text === "string") return templatesOf(text, named(toolTemplateName))
  throw new ModelFileError(
    folder,
    `it has no chat template (neither ${templateFile} nor 'chat_template' in ${tokenizerConfigFile})`,
    "Name the model that was trained for chat, whose name often ends in Instruct or Chat",
  )
}

export const folderTemplate = (folder: string): string =>
  templatesIn(folder, optionalJson(folder, tokenizerConfigFile)).template

/** Token ids, given as a number, a list or null. */
const idsIn = (config: Metadata, size: number): readonly number[] => {
  const value: unknown = config.get("eos_token_id") ?? []
  const ids: readonly unknown[] = Array.isArray(value) ? value : [value]
  return ids.map((id) => {
    if (typeof id !== "number" || !Number.isInteger(id) || id < 0 || id >= size)
      throw new Damaged(`'eos_token_id' names ${JSON.stringify(id)}, which is no token of ${size}`)
    return id
  })
}

const endTokens = (
  folder: string,
  size: number,
  tokenizer: FolderTokenizer,
  eosToken: string,
): readonly number[] => {
  const named = [generationFile, "config.json"].flatMap((name) =>
    explaining(join(folder, name), () => idsIn(optionalJson(folder, name), size)),
  )
  const eos = Object.hasOwn(tokenizer.controlTokens, eosToken)
    ? [tokenizer.controlTokens[eosToken]!]
    : []
  const all = [...new Set([...named, ...eos, ...endsByName(tokenizer.controlTokens)])]
  if (!all.length)
    throw new ModelFileError(
      folder,
      `none of ${generationFile}, config.json and ${tokenizerConfigFile} names a token that ends a text`,
    )
  return all
}

const readTokenizer = (folder: string, size: number): FolderTokenizer => {
  if (!existsSync(join(folder, tokenizerFile)))
    throw new ModelFileError(
      folder,
      `it has no ${tokenizerFile}`,
      "Name a folder that has one, or a GGUF file, which has it inside",
    )
  const json = readJson(folder, tokenizerFile, maxTokenizerBytes)
  return explaining(join(folder, tokenizerFile), () =>
    readTokenizerJson(Object.fromEntries(json) as Readonly<Record<string, Json>>, size),
  )
}

/** With `do_sample` false the temperature beside it is left over from elsewhere. */
const advisedIn = (generation: Metadata) =>
  (generation.get("do_sample") as unknown) === false ? {} : advisedBy(generation.get("temperature"))

/**
 * Reads tokenizer.json and the files beside it; `size`: rows of the embedding table. Throws
 * `ModelFileError`.
 */
export const folderLanguage = (folder: string, size: number): ChatLanguage => {
  const tokenizer = readTokenizer(folder, size)
  const config = optionalJson(folder, tokenizerConfigFile)
  const eosToken = tokenText(config, "eos_token")
  return {
    ...tokenizer,
    ...templatesIn(folder, config),
    bosToken: tokenText(config, "bos_token"),
    eosToken,
    endTokens: endTokens(folder, size, tokenizer, eosToken),
    ...advisedIn(optionalJson(folder, generationFile)),
  }
}
