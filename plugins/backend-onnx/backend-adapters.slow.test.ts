import { readFileSync } from "node:fs"
import { join } from "node:path"
import { afterAll, expect, test } from "vitest"
import type { Adapter, ChatMessage, LoadedModel } from "../../core/ports/model.ts"
import { expectedOf, fixtureFolder } from "./testing/fixtures.ts"
import {
  answer,
  chatRequest,
  context,
  failureOf,
  openBackend,
  textOf as textIn,
} from "./testing/open-backend.ts"
import { folderLanguage } from "./tokenizer/folder-language.ts"

const fixture = openBackend({ slots: 8 })
afterAll(() => fixture.close())

const folder = fixtureFolder("llama-adapters")
const names = ["legal", "poems"]
const adapters = names.map((id) => ({ id, path: join(folder, id) }))
const { greedy } = JSON.parse(readFileSync(join(folder, "expected.json"), "utf8")) as {
  readonly greedy: Readonly<Record<string, readonly number[]>>
}
const { vocabulary } = folderLanguage(fixtureFolder("llama"), 320)
const textOf = (ids: readonly number[]): string =>
  new TextDecoder().decode(Buffer.concat(ids.map((id) => vocabulary.bytesOf(id))), { stream: true })

const messages = expectedOf("llama").chat.map(
  ({ role, content }): ChatMessage => ({
    role: role as "system",
    content: [{ type: "text", text: content }],
  }),
)
const asked = (id?: string, more: Partial<Adapter> = {}) =>
  chatRequest("", {
    messages,
    maxTokens: 16,
    ...(id !== undefined && { adapter: { id, strength: 1, ...more } }),
  })
const wanted = (id?: string): string =>
  textOf(id === undefined ? expectedOf("llama").greedy : greedy[id]!)
const open = (precision: string) =>
  fixture.open("chat", fixtureFolder("llama"), { adapters, options: { precision } })

test("requests with different adapters and none run together, each as with PEFT", async () => {
  const model = await open("fp32")
  expect(model.adapters).toEqual(names)
  const all = [undefined, "legal", "poems", undefined, "poems", "legal"]
  const answers = await Promise.all(all.map((id) => answer(model, asked(id))))
  expect(answers.map(({ text }) => text)).toEqual(all.map(wanted))
  expect(wanted("legal")).not.toBe(wanted("poems"))
  const bytes = model.stats?.().adapterBytes
  expect(bytes).toBeGreaterThan(0)
  expect(bytes).toBeLessThan(2 ** 22)
})

test("several answers of one request all have its adapter", async () => {
  const model = await open("fp32")
  const { events } = await answer(model, { ...asked("legal"), answers: 3 })
  const texts = [0, 1, 2].map((index) =>
    textIn(events.filter(({ answer: of = 0 }) => of === index)),
  )
  expect(texts).toEqual(["legal", "legal", "legal"].map(wanted))
})

test("no adapter reads what another has left in the prefix cache", async () => {
  const model = await open("fp32")
  const texts = async (id?: string, more: Partial<Adapter> = {}) =>
    (await answer(model, asked(id, more))).text
  for (let round = 0; round < 2; round++)
    for (const id of ["legal", undefined, "poems"]) expect(await texts(id)).toBe(wanted(id))
  const half = await texts("legal", { strength: 0.5 })
  expect(half).not.toBe(wanted("legal"))
  expect(await texts("legal", { strength: 0.5 })).toBe(half)
  expect(await texts("legal", { strength: 0 })).toBe(wanted())
})

test("answers of one model without adapters are those of an entry that has some", async () => {
  const bare = await fixture.open("chat", fixtureFolder("llama"), {
    options: { precision: "int8" },
  })
  const model = await open("int8")
  const say = async (of: LoadedModel<"chat">) => (await answer(of, asked())).text
  expect(await say(model)).toBe(await say(bare))
  expect(bare.stats?.()).not.toHaveProperty("adapterBytes")
})

test("in 8 bits, too, each has the answer with its adapter that it has alone", async () => {
  const model = await open("int8")
  const all = [undefined, "legal", "poems", undefined, "poems", "legal"]
  const alone = new Map<string | undefined, string>()
  for (const id of new Set(all)) alone.set(id, (await answer(model, asked(id))).text)
  const together = await Promise.all(all.map((id) => answer(model, asked(id))))
  expect(together.map(({ text }) => text)).toEqual(all.map((id) => alone.get(id)))
  // the reference's first words: a few bits of 8 do not change them
  for (const id of names) expect(alone.get(id)!.slice(0, 4)).toBe(wanted(id).slice(0, 4))
  expect(new Set(alone.values()).size).toBe(3)
})

test("an adapter that the model lacks is refused by name", async () => {
  const model = await open("fp32")
  expect(await failureOf(model.task.plan(asked("other"), context()))).toMatchObject({
    code: "unsupported_parameter",
    param: "adapter",
    message: expect.stringContaining("'other'"),
  })
})

test("what an answer was computed from names the adapter's files, too", async () => {
  const model = await open("fp32")
  const noted = async (id?: string) => {
    const seen: unknown[] = []
    const note = (facts: { readonly model?: unknown }) => void seen.push(facts.model)
    await answer(model, asked(id), context({ note } as never))
    return seen.at(-1)
  }
  const [none, legal, poems] = [await noted(), await noted("legal"), await noted("poems")]
  expect(none).toMatch(/^[0-9a-f]{32}$/)
  expect(legal).toMatch(new RegExp(`^${none}\\+[0-9a-f]{32}$`))
  expect(new Set([none, legal, poems]).size).toBe(3)
  expect(await noted("legal")).toBe(legal)
})
