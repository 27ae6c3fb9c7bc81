import { cpSync, readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { describe, expect, test } from "vitest"
import { chatPrompt } from "../chat-format/chat-prompt.ts"
import { fixtureFolder } from "../testing/fixtures.ts"
import { folderLanguage } from "./folder-language.ts"
import { writtenLanguages } from "./testing/written-languages.ts"
import type { ChatLanguage } from "./vocabulary.ts"

const { root, written } = writtenLanguages()

interface Added {
  readonly id: number
  readonly content: string
  readonly special: boolean
  readonly lstrip?: boolean
  readonly rstrip?: boolean
}
const rows = 320
let folders = 0

/** A tokenizer of 320 tokens with other added ones. */
const withAdded = (change: (own: readonly Added[]) => readonly Added[]): ChatLanguage => {
  const folder = join(root, `added-${folders++}`)
  cpSync(fixtureFolder("qwen2"), folder, { recursive: true })
  const path = join(folder, "tokenizer.json")
  const json = JSON.parse(readFileSync(path, "utf8")) as { readonly added_tokens: readonly Added[] }
  writeFileSync(path, JSON.stringify({ ...json, added_tokens: change(json.added_tokens) }))
  return folderLanguage(folder, rows)
}

const idsOf = async (language: ChatLanguage, content: string) => {
  const messages = [{ role: "user", content }]
  const prompt = await chatPrompt(written(language), { messages }, 1e4)
  if (!("ids" in prompt)) throw new Error(JSON.stringify(prompt))
  return [...prompt.ids]
}

const shown = ({ vocabulary }: ChatLanguage, ids: readonly number[]) =>
  Buffer.concat(
    ids.map((id) =>
      vocabulary.isControl(id) ? Buffer.from(vocabulary.tokens[id]!) : vocabulary.bytesOf(id),
    ),
  ).toString("utf8")

const image = { id: rows, content: "<image_soft_token>", special: true, lstrip: false }

test("a special token that the model has no row for is left out, and its text is text", async () => {
  const language = withAdded((own) => [...own, image])
  expect(language.controlTokens).not.toHaveProperty([image.content])
  expect(language.vocabulary.tokens).toHaveLength(rows)
  const plain = { ...language, template: "{{ messages[0].content }}" }
  const ids = await idsOf(plain, `a${image.content}b`)
  expect(shown(plain, ids)).toBe(`a${image.content}b`)
  expect(Math.max(...ids)).toBeLessThan(rows)
})

test("another token that the model has no row for is refused", () => {
  expect(() => withAdded((own) => [...own, { ...image, special: false }])).toThrow(
    /its token 320 is not in the embedding table of 320/,
  )
})

describe("a special token that is in the vocabulary of texts", () => {
  const { vocab } = (
    JSON.parse(readFileSync(join(fixtureFolder("qwen2"), "tokenizer.json"), "utf8")) as {
      readonly model: { readonly vocab: Readonly<Record<string, number>> }
    }
  ).model
  const special = (content: string) => {
    const flags = { single_word: false, rstrip: false, normalized: false }
    const token = { ...image, ...flags, id: vocab[content]!, content }
    return { ...withAdded((own) => [...own, token]), template: "{{ messages[0].content }}" }
  }

  test("is not made by merges, of which it is a part or the result", async () => {
    const language = special("the")
    const ids = await idsOf(language, "all the answers")
    expect(shown(language, ids)).toBe("all the answers")
    expect(ids).not.toContain(vocab.the)
    expect(language.controlTokens).toHaveProperty("the", vocab.the)
  })

  test("is text where it is a letter, as the one that some models pad with", async () => {
    const language = special("!")
    expect(language.vocabulary.isControl(vocab["!"]!)).toBe(false)
    expect(await idsOf(language, "no! !")).toEqual(
      ["no", "!", "Ġ", "!"].flatMap((token) => vocab[token] ?? [...token].map((one) => vocab[one])),
    )
  })
})

test("white space goes with the control tokens beside it that strip it", async () => {
  const strips = (name: string, sides: Partial<Added>) => (own: readonly Added[]) =>
    own.map((token) => (token.content === name ? { ...token, ...sides } : token))
  const template = "u <|im_start|> {{ messages[0].content }} \n <|im_end|> b"
  const rendered = async (change: (own: readonly Added[]) => readonly Added[], text = " x ") => {
    const language = { ...withAdded(change), template }
    return shown(language, await idsOf(language, text))
  }
  const [start, end] = ["<|im_start|>", "<|im_end|>"]
  expect(await rendered((own) => own)).toBe(`u ${start}  x  \n ${end} b`)
  expect(await rendered(strips(start, { lstrip: true }))).toBe(`u${start}  x  \n ${end} b`)
  expect(await rendered(strips(start, { rstrip: true }))).toBe(`u ${start}x  \n ${end} b`)
  expect(await rendered(strips(end, { lstrip: true }))).toBe(`u ${start}  x${end} b`)
  expect(await rendered(strips(end, { lstrip: true, rstrip: true }))).toBe(`u ${start}  x${end}b`)
  // what is white space in the tokenizers library, which U+FEFF is not
  const text = "\ufeffx\x85"
  expect(await rendered(strips(start, { rstrip: true }), text)).toBe(
    `u ${start}${text} \n ${end} b`,
  )
  expect(await rendered(strips(end, { lstrip: true }), text)).toBe(`u ${start} \ufeffx${end} b`)
})
