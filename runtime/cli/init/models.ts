import { existsSync, statSync } from "node:fs"
import { basename, dirname, extname, relative, resolve } from "node:path"
import { parse } from "yaml"
import { knownModels, knownModelText, type Parts } from "./parts.ts"

/** An entry of `models:`, as text of YAML with its comments. */
export interface Entry {
  readonly id: string
  readonly task: string
  readonly text: string
}

const entryIn = (text: string): Entry => {
  const [{ id, task }] = parse(`models:\n${text}`).models as [Entry]
  return { id, task, text: text.trimEnd() }
}

/** The comments before `models:` stand before the entry. */
const knownEntry = (name: string): Entry => {
  const [notes = "", body = ""] = knownModelText(name).split(/^models:\n/m)
  const comments = notes.trimEnd().replace(/^/gm, "  ")
  return entryIn(`${comments}\n${body}`)
}

/** `My Model.Q4_K_M.gguf` -> `my-model`, `x-q4_0-00001-of-00002.gguf` -> `x` */
const idOf = (file: string): string =>
  basename(file, extname(file))
    .replace(/-\d{5}-of-\d{5}$/, "")
    .replace(/[.-]?(q\d\w*|iq\d\w*|f16|f32|bf16)$/i, "")
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, "-")
    .replace(/^-+|-+$/g, "") || "model"

const fileEntry = (parts: Parts, path: string, configFile: string): Entry => {
  const near = relative(dirname(resolve(configFile)), resolve(path))
  const source = `${near.startsWith("..") ? "" : "./"}${near}${statSync(path).isDirectory() ? "/" : ""}`
  const id = idOf(path)
  // `123` and `true` are no texts of YAML, and a `${` in a name stands for itself
  return entryIn(
    parts.entries.file
      .replace("{id}", () => (typeof parse(id) === "string" ? id : JSON.stringify(id)))
      .replace("{url}", () => JSON.stringify(source.replaceAll("${", () => "$${"))),
  )
}

/** Returns the first part of a GGUF file, whichever was given. */
const firstPart = (path: string): string => path.replace(/-\d{5}(-of-\d{5}\.gguf)$/, "-00001$1")

/** The entry of a name of config/models, or of a path. Throws an Error that says what would do. */
const entryOf = (parts: Parts, named: string, configFile: string): Entry => {
  const model = firstPart(named)
  if (knownModels().includes(model)) return knownEntry(model)
  if (!/[./\\]/.test(model))
    throw new Error(
      `--model: there is no model '${model}'. Fix: a path to a GGUF file or a folder of safetensors, or one of ${knownModels().join(", ")}.`,
    )
  if (!existsSync(model))
    throw new Error(
      `--model: there is no file ${model}. Fix: give the path of a file that is here.`,
    )
  return fileEntry(parts, model, configFile)
}

/** Those that were named, and small ones for what is served without. */
export const entriesOf = (
  parts: Parts,
  { serve, models }: { readonly serve: readonly string[]; readonly models: readonly string[] },
  configFile: string,
): readonly Entry[] => {
  const named = models.map((model) => entryOf(parts, model, configFile))
  const twice = named.find(({ id }, index) => named.findIndex((one) => one.id === id) < index)
  if (twice)
    throw new Error(
      `--model: two would have the id '${twice.id}'. Fix: name one, and add the other by hand.`,
    )
  const lacks = (task: string) => !named.some((entry) => entry.task === task)
  // documents are searched by their embeddings
  const embeds = serve.includes("embeddings") || serve.includes("retrieval")
  return [
    ...named,
    ...(serve.includes("chat") && lacks("chat") ? [entryIn(parts.entries.chat)] : []),
    ...(embeds && lacks("embed") ? [entryIn(parts.entries.embed)] : []),
  ]
}
