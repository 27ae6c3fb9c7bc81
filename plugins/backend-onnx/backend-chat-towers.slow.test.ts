import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { Effect } from "effect"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import type { ChatMessage, LoadedModel, Part } from "../../core/ports/model.ts"
import { openDecoder } from "./sessions/open-decoder.ts"
import { fixtureFolder } from "./testing/fixtures.ts"
import { valuesOf } from "./testing/gguf-of-folder.ts"
import { mmprojGguf, sightedDecoderGguf, writtenIn } from "./testing/mmproj-of-folder.ts"
import { answer, chatRequest, context, openBackend } from "./testing/open-backend.ts"
import { writeSafetensors } from "./testing/safetensors-writer.ts"
import { drawnPng, expectedSight, sightedFolder } from "./testing/sighted.ts"
import { openSafetensorsFolder } from "./weights/safetensors-folder.ts"

/** Chat models whose decoder and tower are files of their own. */
const root = mkdtempSync(join(tmpdir(), "rakit-towers-"))
const backend = openBackend({ speculation: false })
afterAll(async () => {
  await backend.close()
  rmSync(root, { recursive: true, force: true })
})

const template = (name: string) =>
  readFileSync(join(sightedFolder(name), "chat_template.jinja"), "utf8")
// knows no images: it takes contents as texts
const plain =
  "{% for message in messages %}{{ '<|im_start|>' + message['role'] + '\\n' + message['content'] }}{% endfor %}<|im_start|>"
const eos = { idefics3: 5, "llava-clip": 0 }
const decoderOf = (name: keyof typeof eos, chat = template(name)) => {
  const bytes = sightedDecoderGguf(sightedFolder(name), chat, eos[name])
  return writtenIn(root, `${name}-${chat.length}.gguf`, bytes)
}
const picture = async (width: number, height: number): Promise<Part> => ({
  type: "media",
  mediaType: "image/png",
  bytes: await drawnPng(width, height),
})
const text = (content: string): Part => ({ type: "text", text: content })
const saying = (...content: readonly Part[]) =>
  chatRequest("", { messages: [{ role: "user", content }] })

describe.each(["idefics3", "llava-clip"] as const)("%s in two GGUF files", (name) => {
  it("answers about images as transformers does", async () => {
    const path = decoderOf(name)
    const tower = writtenIn(
      root,
      `mmproj-${name}.gguf`,
      mmprojGguf(sightedFolder(name), name === "llava-clip"),
    )
    const model = await backend.open("chat", path, {
      options: { precision: "fp32" },
      adapters: [{ id: "vision", path: tower }],
    })
    expect(model).toMatchObject({
      modalities: ["text", "image", "video"],
      parts: ["vision"],
      adapters: [],
    })
    expect(model.capabilities).toContain("vision")
    const { images, chats } = expectedSight(name)
    const graphs = join(root, "graphs")
    const spec = { path, graphs, precision: "fp32" as const, threads: 1 }
    const { bytesOf, endTokens, session } = await openDecoder(spec, () => {})
    for (const { messages, images: shown, ids, greedy } of chats) {
      const order = [...shown]
      const asked: ChatMessage[] = []
      for (const { role, content } of messages) {
        const parts: Part[] = []
        for (const part of content) {
          const image = part.type === "image" ? images[order.shift()!]! : undefined
          parts.push(image ? await picture(image.width, image.height) : text(part.text ?? ""))
        }
        asked.push({ role, content: parts })
      }
      const { text: said, usage } = await answer(
        model,
        chatRequest("", { messages: asked, maxTokens: greedy.length }),
      )
      expect(usage.inputTokens).toBe(ids.length)
      const end = greedy.findIndex((id) => endTokens.has(id))
      const bytes = (end < 0 ? greedy : greedy.slice(0, end)).map((id) => bytesOf(id))
      expect(said.slice(0, 2)).toBe(Buffer.concat(bytes).toString().slice(0, 2))
    }
    await session.close()
  })
})

describe("a tower in a folder of its own, beside a decoder that knows no images", () => {
  const folder = join(root, "vision")
  const path = () => decoderOf("llava-clip", plain)
  const legal = fixtureFolder("llama-adapters/legal")
  const open = (adapters: readonly { readonly id: string; readonly path: string }[]) =>
    backend.open("chat", path(), { options: { precision: "fp32" }, adapters })
  let model: LoadedModel<"chat">
  beforeAll(async () => {
    cpSync(sightedFolder("llava-clip"), folder, { recursive: true })
    const file = join(folder, "config.json")
    const { text_config: _, ...config } = JSON.parse(readFileSync(file, "utf8"))
    // the token of another vocabulary
    writeFileSync(file, JSON.stringify({ ...config, image_token_index: 128_256 }))
    model = await open([{ id: "vision", path: folder }])
  })

  it("reads images where their blocks stand, and nothing else for them", async () => {
    const [before, after] = ["Which colour ", "is it?"]
    const inputOf = async (...content: readonly Part[]) =>
      (await answer(model, saying(...content))).usage
    const image = await picture(301, 200)
    const counted = await inputOf(image, text(after))
    const without = await inputOf(text(after))
    expect(counted).toMatchObject({ imageTokens: 16, inputTokens: without.inputTokens + 16 })
    expect((await inputOf(text(before), image, text(after), image)).imageTokens).toBe(32)
    const answers = await Promise.all(
      [
        [image, text(after)],
        [text(after), image],
        [await picture(57, 211), text(after)],
      ].map(async (content) => (await answer(model, saying(...content))).text),
    )
    expect(new Set(answers).size).toBe(3)
  })

  it("applies the LoRA that lies beside the tower to requests with images", async () => {
    const tuned = join(root, "tuned")
    cpSync(folder, tuned, { recursive: true })
    for (const name of ["adapter_config.json", "adapter_model.safetensors"])
      cpSync(join(legal, name), join(tuned, name))
    const own = await open([{ id: "vision", path: tuned }])
    expect(own).toMatchObject({ adapters: [], parts: ["vision"] })
    const chosen = await open([
      { id: "vision", path: folder },
      { id: "legal", path: legal },
    ])
    expect(chosen.adapters).toEqual(["legal"])
    const image = await picture(301, 200)
    for (const content of [[text("Is it?")], [image, text("Is it?")]]) {
      const digests: unknown[] = []
      const note = (facts: { readonly model?: unknown }) => void digests.push(facts.model)
      const noted = () => context({ note } as never)
      const asked = saying(...content)
      const all = [
        await answer(own, asked, noted()),
        await answer(chosen, { ...asked, adapter: { id: "legal", strength: 1 } }, noted()),
        await answer(chosen, asked, noted()),
      ].map((each) => each.text)
      const [same, other] = content.length === 2 ? [1, 2] : [2, 1]
      expect(all[0]).toBe(all[same])
      expect(all[0]).not.toBe(all[other])
      expect(digests[0]).toBe(digests[same])
      expect(digests[0]).not.toBe(digests[other])
    }
    const failure = await backend.failure("chat", path(), {
      adapters: [
        { id: "vision", path: tuned },
        { id: "legal", path: legal },
      ],
    })
    expect(failure.message).toMatch(/has the adapters legal, and its part 'vision' has a LoRA/)
  })

  it("is described without being opened, and left out where the entry takes texts only", async () => {
    const entry = {
      ...{ id: "m", task: "chat" as const, path: path(), options: {}, contextTokens: 99 },
      adapters: [{ id: "vision", path: folder }],
    }
    const describe_ = backend.backend.describe!
    expect(await Effect.runPromise(describe_(entry))).toMatchObject({
      modalities: ["text", "image", "video"],
      capabilities: expect.arrayContaining(["vision"]),
    })
    const blind = { ...entry, modalities: ["text"] }
    expect(await Effect.runPromise(describe_(blind))).toMatchObject({ modalities: ["text"] })
    const opened = await backend.open("chat", path(), blind)
    expect(opened).toMatchObject({ modalities: ["text"], adapters: [] })
    expect(opened.parts).toBeUndefined()
    const deaf = { ...entry, adapters: [...entry.adapters, { id: "hearing", path: folder }] }
    const seeing = await backend.open("chat", path(), { ...deaf, modalities: ["text", "image"] })
    expect(seeing.parts).toEqual(["vision"])
  })

  it("is refused where it is no tower, or of another decoder", async () => {
    const refusal = async (tower: string) =>
      (await backend.failure("chat", path(), { adapters: [{ id: "vision", path: tower }] })).message
    expect(await refusal(fixtureFolder("llama"))).toMatch(/no tower that reads images/)
    const source = openSafetensorsFolder(folder)
    const tensors = [...source.names()].map((name) => {
      const { rows, columns } = source.tensor(name)
      const values = valuesOf(source, name)
      if (!name.includes("linear_2"))
        return { name, shape: rows > 1 ? [rows, columns] : [columns], values }
      const shape = rows > 1 ? [rows / 2, columns] : [columns / 2]
      return { name, shape, values: values.slice(0, values.length / 2) }
    })
    source.close()
    const narrow = join(root, "narrow")
    cpSync(folder, narrow, { recursive: true })
    writeFileSync(join(narrow, "model.safetensors"), writeSafetensors(tensors))
    expect(await refusal(narrow)).toMatch(/vectors of 16 numbers, and the decoder .* reads 32/)
  })
})
