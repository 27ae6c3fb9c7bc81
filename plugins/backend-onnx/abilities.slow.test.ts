import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { Effect } from "effect"
import { afterAll, expect, test } from "vitest"
import type { Json } from "../../core/json.ts"
import type { TaskName } from "../../core/ports/model.ts"
import { fixtureFolder } from "./testing/fixtures.ts"
import { writeGguf } from "./testing/gguf-writer.ts"
import { openBackend } from "./testing/open-backend.ts"
import { writeTinyBert } from "./testing/tiny-bert.ts"
import { tinyLlama } from "./testing/tiny-llama.ts"

const folder = mkdtempSync(join(tmpdir(), "rakit-abilities-"))
const opened: { close(): Promise<void> }[] = []
afterAll(async () => {
  for (const one of opened) await one.close()
  rmSync(folder, { recursive: true, force: true })
})

const gguf = join(folder, "tiny.gguf")
writeFileSync(gguf, writeGguf(tinyLlama(8)))
const thinker = join(folder, "thinker.gguf")
const { metadata, ...tiny } = tinyLlama(8)
const template = `${metadata["tokenizer.chat_template"]}{% if enable_thinking %}<think></think>{% endif %}`
writeFileSync(
  thinker,
  writeGguf({ ...tiny, metadata: { ...metadata, "tokenizer.chat_template": template } }),
)
const bert = join(folder, "bert")
writeTinyBert(bert)

/** What is said before the model is opened, and then of the open one. */
const both = async (
  task: TaskName,
  path: string,
  settings: Parameters<typeof openBackend>[0] = {},
) => {
  const fixture = openBackend(settings)
  opened.push(fixture)
  const contextTokens = 1_000_000
  const described = await Effect.runPromise(
    fixture.backend.describe!({ id: "m", task, path, options: {}, contextTokens }),
  )
  const loaded = await fixture.open(task, path)
  const { modalities, capabilities } = loaded
  return { described, loaded: { contextTokens: loaded.contextTokens, modalities, capabilities } }
}

const chat = ["tool_use", "structured_output", "prompt_caching"]

test.each<[string, TaskName, string, readonly string[]]>([
  ["a GGUF file", "chat", gguf, chat],
  ["a folder", "chat", fixtureFolder("llama"), chat],
  [
    "a model that thinks",
    "chat",
    thinker,
    ["tool_use", "structured_output", "thinking", "prompt_caching"],
  ],
  ["a reranker", "rerank", fixtureFolder("qwen2"), []],
  ["an encoder", "embed", bert, []],
])("of %s the header says what the open model says", async (_, task, path, capabilities) => {
  const { described, loaded } = await both(task, path)
  expect(described).toEqual(loaded)
  expect(described).toMatchObject({ modalities: ["text"], capabilities })
  expect(described!.contextTokens).toBeGreaterThan(0)
})

test("the window is bounded by the memory for keys and values, and no cache is no caching", async () => {
  const { described, loaded } = await both("chat", gguf, { kvMemoryMb: 1, prefixCacheMb: 0 })
  expect(described).toEqual(loaded)
  expect(described!.capabilities).not.toContain("prompt_caching")
})

test("of an export nothing is said before it is open, and a damaged file fails", async () => {
  const fixture = openBackend()
  opened.push(fixture)
  const describe = (path: string) =>
    fixture.backend.describe!({ id: "m", task: "chat", path, options: {}, contextTokens: 9 })
  expect(await Effect.runPromise(describe(fixtureFolder("llama-export")))).toBeUndefined()
  writeFileSync(join(folder, "cut.gguf"), "GGUF")
  const failure = await Effect.runPromise(Effect.flip(describe(join(folder, "cut.gguf"))))
  expect(failure).toMatchObject({ code: "backend_error" })
})

test("LoRAs that the model can't be opened with are refused by their headers", async () => {
  const fixture = openBackend()
  opened.push(fixture)
  const describe = (path: string, ...folders: readonly string[]) => {
    const adapters = folders.map((name, at) => ({ id: `a${at}`, path: fixtureFolder(name) }))
    const request = {
      id: "m",
      task: "chat",
      path,
      adapters,
      options: {},
      contextTokens: 9,
    } as const
    return fixture.backend.describe!(request)
  }
  const [llama, legal] = [fixtureFolder("llama"), "llama-adapters/legal"]
  expect(await Effect.runPromise(describe(llama, legal))).toMatchObject({ modalities: ["text"] })
  for (const [wrong, message] of [
    [describe(llama, legal, "phi3-adapters/legal"), /phi3-adapters.*it has the tensor 'base_model/],
    [
      describe(gguf, legal),
      /llama-adapters.*the tensor 'base_model.* and the model asks for .*Name an adapter that was/,
    ],
    [describe(llama, "llama"), /adapter_config\.json: it is missing/],
    [describe(fixtureFolder("llama-export"), legal), /ready-made graph, which takes no adapters/],
  ] as const)
    expect(await Effect.runPromise(Effect.flip(wrong))).toMatchObject({
      code: "backend_error",
      message: expect.stringMatching(message),
    })
})

test("LoRAs that take more memory than they may are refused by their headers, as by open", async () => {
  const fixture = openBackend({ adapterMemoryMb: 0.01 })
  opened.push(fixture)
  const adapters = [{ id: "legal", path: fixtureFolder("llama-adapters/legal") }]
  const path = fixtureFolder("llama")
  const request = { id: "m", task: "chat", path, adapters, contextTokens: 9 } as const
  const { message } = await Effect.runPromise(
    Effect.flip(fixture.backend.describe!({ ...request, options: {} })),
  )
  expect(message).toMatch(/legal: with it the adapters of the model can take 1 MB, the most is 0/)
  const failure = await fixture.failure("chat", path, { adapters })
  expect(failure.message).toContain(message)
})

test("two graphs, one for prompts, have half of the memory of LoRAs each", async () => {
  // the LoRA's tiles take more than 64 KB, and less than 128
  const fixture = openBackend({ adapterMemoryMb: 1 / 8 })
  opened.push(fixture)
  const adapters = [{ id: "legal", path: fixtureFolder("llama-adapters/legal") }]
  const described = (options: Json) =>
    fixture.backend.describe!({
      ...{ id: "m", task: "chat", path: fixtureFolder("llama"), adapters, contextTokens: 9 },
      options,
    })
  expect(await Effect.runPromise(described({}))).toMatchObject({ modalities: ["text"] })
  const failure = Effect.flip(described({ promptPrecision: "int8-channel" }))
  expect((await Effect.runPromise(failure)).message).toMatch(/Raise adapterMemoryMb/)
})
