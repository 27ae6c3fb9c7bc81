import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterAll, expect, test } from "vitest"
import { pairPromptsIn, promptFor, promptsIn } from "./prompts.ts"

const root = mkdtempSync(join(tmpdir(), "rakit-prompts-"))
afterAll(() => rmSync(root, { recursive: true, force: true }))

const folderWith = (json: unknown): string => {
  const folder = mkdtempSync(join(root, "model-"))
  writeFileSync(join(folder, "config_sentence_transformers.json"), JSON.stringify(json))
  return folder
}
const e5 = { prompts: { query: "query: ", passage: "passage: " }, default_prompt_name: null }
const task = "Instruct: Given a web search query, retrieve passages\nQuery:"

test("a model without prompts gets the instruction, and a space", () => {
  for (const prompts of [promptsIn(root), promptsIn(folderWith({ similarity_fn_name: "dot" }))]) {
    expect(promptFor(prompts, undefined)).toBe("")
    expect(promptFor(prompts, "query:")).toBe("query: ")
    expect(promptFor(prompts, "query:\n")).toBe("query:\n")
  }
})

test("an instruction may name a prompt of the model", () => {
  const prompts = promptsIn(folderWith(e5))
  expect(promptFor(prompts, "passage")).toBe("passage: ")
  expect(promptFor(prompts, "constructor")).toBe("constructor ")
  expect(promptFor(prompts, undefined)).toBe("")
})

test("the default prompt is for requests without an instruction", () => {
  const prompts = promptsIn(folderWith({ ...e5, default_prompt_name: "passage" }))
  expect(promptFor(prompts, undefined)).toBe("passage: ")
  expect(promptFor(prompts, "query")).toBe("query: ")
})

test("a model that was trained with tasks gets the instruction as one", () => {
  const prompts = promptsIn(folderWith({ prompts: { query: task, document: "" } }))
  expect(promptFor(prompts, "query")).toBe(task)
  expect(promptFor(prompts, "document")).toBe("")
  expect(promptFor(prompts, "Find recipes")).toBe("Instruct: Find recipes\nQuery:")
})

test.each([
  [{ prompts: { a: 5 } }, /'a' is not a text/],
  [{ prompts: [] }, /'prompts' is not an object/],
  [{ prompts: {}, default_prompt_name: "a" }, /'default_prompt_name' is 'a'/],
  [{ prompts: { a: "x".repeat(3_000) } }, /its prompt 'a' has 3000 characters/],
])("refuses %j", (json, reason) => {
  const folder = folderWith(json)
  expect(() => promptsIn(folder)).toThrow(reason)
  expect(() => promptsIn(folder)).toThrow(folder)
})

test("a cross-encoder has its default prompt only as sentence-transformers saved it", () => {
  const saved = {
    model_type: "CrossEncoder",
    prompts: { web: "Search: ", none: "" },
    default_prompt_name: "web",
  }
  const promptIn = (json: object, isSaved = true): string => {
    const folder = folderWith(json)
    writeFileSync(
      join(folder, "config.json"),
      JSON.stringify({ architectures: ["BertForSequenceClassification"] }),
    )
    if (isSaved) writeFileSync(join(folder, "modules.json"), "[]")
    return pairPromptsIn(folder).byDefault
  }
  expect(promptIn(saved)).toBe("Search: ")
  expect(promptIn({ ...saved, default_prompt_name: "none" })).toBe("")
  expect(promptIn({ ...saved, default_prompt_name: null })).toBe("")
  expect(promptIn({ ...saved, model_type: "SentenceTransformer" })).toBe("")
  expect(promptIn(saved, false)).toBe("")
  expect(() => promptIn({ ...saved, default_prompt_name: "query" })).toThrow(/is no prompt of it/)
})
