import { cpSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { describe, expect, test } from "vitest"
import { chatPrompt } from "../chat-format/chat-prompt.ts"
import { checkpoints, expectedOf, fixtureFolder } from "../testing/fixtures.ts"
import {
  byteLevelMetadata,
  gemmaMetadata,
  phiMetadata,
  type SentencePieceFixture,
  sentencePieceMetadata,
} from "../testing/gguf-of-folder.ts"
import { folderLanguage } from "./folder-language.ts"
import { ggufLanguage } from "./gguf-language.ts"
import { metadataOf, writtenLanguages } from "./testing/written-languages.ts"
import type { ChatLanguage } from "./vocabulary.ts"

const { root, written } = writtenLanguages()
let folders = 0

const idsOf = async (language: ChatLanguage, text: string) =>
  (await written(language).tokenizer.encode(text, null, { addSpecialTokens: false })).getIds()
const textOf = (language: ChatLanguage, ids: readonly number[]) =>
  Buffer.concat(ids.map((id) => language.vocabulary.bytesOf(id))).toString("utf8")

const chatIdsOf = async (
  language: ChatLanguage,
  messages: readonly { readonly role: string; readonly content: string }[],
) => {
  const prompt = await chatPrompt(written(language), { messages }, 10_000)
  return "ids" in prompt ? [...prompt.ids] : prompt
}

describe("a folder's tokenizer and template do what transformers does with them", () => {
  test.each(checkpoints)("%s", async (name) => {
    const expected = expectedOf(name)
    const language = folderLanguage(fixtureFolder(name), 416)
    expect(await idsOf(language, expected.text)).toEqual(expected.textIds)
    expect(await chatIdsOf(language, expected.chat)).toEqual(expected.chatIds)
    const text = textOf(language, expected.textIds)
    expect(language.startsWithSpace ? text.slice(1) : text).toBe(expected.text)
  })

  test("what a user writes is no control token, though the text looks like one", async () => {
    for (const name of checkpoints) {
      const language = folderLanguage(fixtureFolder(name), 416)
      for (const [token, id] of Object.entries(language.controlTokens)) {
        const ids = await idsOf(language, `a${token}b`)
        expect(ids).not.toContain(id)
        expect(textOf(language, ids).trimStart()).toBe(`a${token}b`)
      }
    }
  })
})

const template = {
  "tokenizer.chat_template": "{{ messages[0].content }}",
  "tokenizer.ggml.eos_token_id": 2,
}

test("control tokens of a GGUF file that merges know are made by none, and letters are text", async () => {
  const own = byteLevelMetadata(fixtureFolder("qwen2"), "qwen2")
  const tokens = own["tokenizer.ggml.tokens"] as readonly string[]
  const types = (own["tokenizer.ggml.token_type"] as readonly number[]).map((type, id) =>
    ["the", "!"].includes(tokens[id]!) ? 3 : type,
  )
  const changed = { ...own, ...template, "tokenizer.ggml.token_type": types }
  const language = ggufLanguage(metadataOf(changed), 416)
  expect(language.controlTokens).toHaveProperty("the")
  expect(language.controlTokens).not.toHaveProperty("!")
  const ids = await idsOf(language, "all the answers!")
  expect(ids).not.toContain(tokens.indexOf("the"))
  expect(textOf(language, ids)).toBe("all the answers!")
})

describe("the same from the metadata of a GGUF file", () => {
  test.each([
    ["llama", "smollm"],
    ["llama3-sharded", "llama-bpe"],
    ["llama3-sharded", "falcon3"],
    ["qwen2", "megrez"],
    ["qwen2", "qwen2"],
    ["qwen3", "qwen2"],
    ["smollm3", "smaug-bpe"],
    ["phi4-mini", "gpt-4o"],
    ["gemma3", gemmaMetadata],
    ["phi3", phiMetadata],
  ])("%s, %s", async (name, pre) => {
    const { text, textIds, chat, chatIds } = expectedOf(name)
    const folder = folderLanguage(fixtureFolder(name), 416)
    const named = {
      "tokenizer.chat_template": folder.template,
      "tokenizer.ggml.bos_token_id": folder.controlTokens[folder.bosToken]!,
      "tokenizer.ggml.eos_token_id": 2,
    }
    const own =
      typeof pre === "string"
        ? byteLevelMetadata(fixtureFolder(name), pre)
        : pre(fixtureFolder(name))
    const language = ggufLanguage(metadataOf({ ...own, ...named }), 416)
    expect(await idsOf(language, text)).toEqual(textIds)
    expect(await chatIdsOf(language, chat)).toEqual(chatIds)
    for (const id of textIds)
      expect(language.vocabulary.bytesOf(id)).toEqual(folder.vocabulary.bytesOf(id))
  })

  test.each([1, 4])(
    "markers of turns are control tokens, though a file types them %i",
    async (type) => {
      const { chat, chatIds } = expectedOf("gemma3")
      const folder = folderLanguage(fixtureFolder("gemma3"), 416)
      const own = gemmaMetadata(fixtureFolder("gemma3"))
      const tokens = own["tokenizer.ggml.tokens"] as readonly string[]
      const markers = ["<start_of_turn>", "<end_of_turn>"].map((token) => tokens.indexOf(token))
      const types = own["tokenizer.ggml.token_type"] as readonly number[]
      const metadata = {
        ...own,
        "tokenizer.chat_template": folder.template,
        "tokenizer.ggml.bos_token_id": folder.controlTokens[folder.bosToken]!,
        "tokenizer.ggml.eos_token_id": 1,
        "tokenizer.ggml.token_type": types.map((of, id) => (markers.includes(id) ? type : of)),
      }
      const language = ggufLanguage(metadataOf(metadata), 416)
      expect(await chatIdsOf(language, chat)).toEqual(chatIds)
      expect(language.endTokens).toEqual([1, markers[1]])
      const ids = await idsOf(language, "a<end_of_turn>b")
      expect([ids.includes(markers[1]!), textOf(language, ids)]).toEqual([false, "a<end_of_turn>b"])
    },
  )

  test("a call of Llama 3.x that awaits its result ends by a token that no key names", () => {
    const own = byteLevelMetadata(fixtureFolder("llama3-sharded"), "llama-bpe")
    const tokens = (own["tokenizer.ggml.tokens"] as readonly string[]).with(1, "<|eom_id|>")
    const metadata = { ...own, ...template, "tokenizer.ggml.tokens": tokens }
    expect(ggufLanguage(metadataOf(metadata), 416).endTokens).toEqual([2, 4, 1])
  })

  test("SentencePiece: pieces by score, bytes where there is no piece", async () => {
    const fixture = JSON.parse(
      readFileSync(join(fixtureFolder("sentencepiece.json")), "utf8"),
    ) as SentencePieceFixture
    const language = ggufLanguage(
      metadataOf({ ...sentencePieceMetadata(fixture), ...template }),
      fixture.tokens.length,
    )
    for (const { text, ids } of fixture.texts) {
      const found = await idsOf(language, text)
      // sentencepiece puts the space before a symbol at the beginning, transformers and llama.cpp
      // behind it
      if (text.startsWith("[TOOL]")) expect([...found].sort()).toEqual([...ids].sort())
      else expect([found, textOf(language, found).slice(text ? 1 : 0)]).toEqual([ids, text])
    }
    expect(language).toMatchObject({
      startsWithSpace: true,
      endTokens: [2],
      bosToken: "<s>",
      controlTokens: { "<unk>": 0, "<s>": 1, "</s>": 2 },
    })
    const bare = ggufLanguage(
      metadataOf({
        ...sentencePieceMetadata(fixture),
        ...template,
        "tokenizer.ggml.add_space_prefix": false,
      }),
      fixture.tokens.length,
    )
    expect(textOf(bare, await idsOf(bare, "yes no"))).toBe("yes no")
    expect(bare.startsWithSpace).toBe(false)
  })

  test("a pre-tokenizer that is not named splits punctuation and numbers", async () => {
    const metadata = new Map(
      metadataOf({ ...byteLevelMetadata(fixtureFolder("llama"), ""), ...template }),
    )
    metadata.delete("tokenizer.ggml.pre")
    const language = ggufLanguage(metadata, 416)
    const ids = await idsOf(language, "the yes: 1984 no!")
    expect(textOf(language, ids)).toBe("the yes: 1984 no!")
  })
})

describe("a mark of the prompt's beginning", () => {
  const metaspace = { type: "Metaspace", replacement: "▁", prepend_scheme: "first", split: false }
  const folder = join(root, "metaspace")
  cpSync(fixtureFolder("mistral"), folder, { recursive: true })
  const json = JSON.parse(readFileSync(join(folder, "tokenizer.json"), "utf8")) as Record<
    string,
    unknown
  >
  writeFileSync(
    join(folder, "tokenizer.json"),
    JSON.stringify({ ...json, normalizer: null, pre_tokenizer: metaspace }),
  )

  test("is not given to what follows a control token", async () => {
    const language = folderLanguage(folder, 416)
    expect(language.startsWithSpace).toBe(true)
    const [first, later] = [
      { ...language, template: "{{ messages[0].content }}" },
      { ...language, template: "<s>{{ messages[0].content }}" },
    ]
    const shown = async (of: ChatLanguage) => {
      const ids = await chatIdsOf(of, [{ role: "user", content: "yes" }])
      return Array.isArray(ids) ? textOf(language, ids) : "refused"
    }
    expect([await shown(first), await shown(later)]).toEqual([" yes", "yes"])
  })
})

describe("what the files advise to sample with", () => {
  const folderWith = (generation: object) => {
    const folder = join(root, `advised-${folders++}`)
    cpSync(fixtureFolder("qwen2"), folder, { recursive: true })
    const file = join(folder, "generation_config.json")
    const json = JSON.parse(readFileSync(file, "utf8")) as object
    writeFileSync(file, JSON.stringify({ ...json, ...generation }))
    return folderLanguage(folder, 320).advisedTemperature
  }
  test.each([
    [{}, undefined],
    [{ do_sample: true, temperature: 0.7 }, 0.7],
    [{ temperature: 0 }, 0],
    [{ do_sample: false, temperature: 0.7 }, undefined],
    [{ temperature: 7 }, undefined],
    [{ temperature: "hot" }, undefined],
  ])("a folder's generation_config.json: %j", (generation, temperature) => {
    expect(folderWith(generation)).toBe(temperature)
  })

  test("a GGUF file's metadata", () => {
    const metadata = (more: Readonly<Record<string, number>>) =>
      metadataOf({ ...template, ...byteLevelMetadata(fixtureFolder("qwen2"), "qwen2"), ...more })
    expect(ggufLanguage(metadata({}), 320).advisedTemperature).toBe(undefined)
    const said = metadata({ "general.sampling.temp": Math.fround(0.6) })
    expect(ggufLanguage(said, 320).advisedTemperature).toBe(0.6)
  })
})

describe("a folder that can't talk says what is missing", () => {
  const broken = (name: string, change: (folder: string) => void) => {
    const folder = join(root, `broken-${folders++}-${name}`)
    cpSync(fixtureFolder("qwen2"), folder, { recursive: true })
    change(folder)
    return () => folderLanguage(folder, 320)
  }
  const replaced =
    (file: string, change: Readonly<Record<string, unknown>>) => (folder: string) => {
      const json = JSON.parse(readFileSync(join(folder, file), "utf8")) as Record<string, unknown>
      writeFileSync(join(folder, file), JSON.stringify({ ...json, ...change }))
    }
  test.each<readonly [string, (folder: string) => void, RegExp]>([
    [
      "no tokenizer",
      (folder) => rmSync(join(folder, "tokenizer.json")),
      /it has no tokenizer.json\. Name a folder that has one/,
    ],
    [
      "cut tokenizer",
      (folder) => writeFileSync(join(folder, "tokenizer.json"), "{"),
      /tokenizer.json: it is not JSON/,
    ],
    [
      "no template",
      (folder) => rmSync(join(folder, "tokenizer_config.json")),
      /has no chat template/,
    ],
    [
      "words of another kind",
      replaced("tokenizer.json", {
        pre_tokenizer: { type: "BertPreTokenizer" },
        decoder: { type: "WordPiece" },
      }),
      /neither byte-level nor SentencePiece/,
    ],
    [
      "an end that is no token",
      replaced("generation_config.json", { eos_token_id: [2, 999] }),
      /generation_config.json: 'eos_token_id' names 999/,
    ],
    [
      "no vocabulary",
      replaced("tokenizer.json", { model: { type: "BPE" } }),
      /it has no vocabulary/,
    ],
  ])("%s", (name, change, reason) => {
    expect(broken(name, change)).toThrow(reason)
  })

  test("a vocabulary larger than the embedding table", () => {
    expect(() => folderLanguage(fixtureFolder("qwen2"), 200)).toThrow(
      /not in the embedding table of 200/,
    )
  })
})
