import { hash } from "node:crypto"
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterAll, expect, it } from "vitest"
import { chatPrompt } from "../chat-format/chat-prompt.ts"
import { openDecoder } from "../sessions/open-decoder.ts"
import { expectedSight, sightedFolder, sightedModels } from "../testing/sighted.ts"
import { loadChatTokenizer } from "../tokenizer/chat-tokenizer.ts"
import { sightConfig, type TiledSight } from "../vision/sight-config.ts"
import { promptParts } from "./chat-images.ts"
import { encodedImages, imageTokens } from "./encoded-images.ts"

const graphs = mkdtempSync(join(tmpdir(), "rakit-image-prompts-"))
afterAll(() => rmSync(graphs, { recursive: true, force: true }))

it.each(sightedModels)("prompts with images have the tokens of %s's processor", async (name) => {
  const path = sightedFolder(name)
  const config = sightConfig(path) as TiledSight
  const spec = { path, graphs, precision: "fp32" as const, threads: 1 }
  const { folder, session } = await openDecoder(spec, () => {})
  await session.close()
  const { images, chats } = expectedSight(name)
  for (const { messages, images: shown, ids } of chats) {
    const parts = shown.map((index) =>
      promptParts({ digest: hash("sha256", `${index}`, "buffer"), image: images[index]! }, config),
    )
    const mark = "\u{f0005}"
    const prompt = await chatPrompt(
      loadChatTokenizer(folder),
      {
        messages: messages.map(({ role, content }) => ({
          role,
          content: content.map(({ text = mark }) => text).join(""),
        })),
        images: { mark, token: config.imageToken, parts },
      },
      4_096,
    )
    if (!("ids" in prompt)) throw new Error(JSON.stringify(prompt))
    const placed = [...prompt.ids].map((id) => (id < 0 ? config.imageToken : id))
    expect(placed).toEqual(ids)
    const rows = prompt.ids.filter((id) => id < 0)
    expect(new Set(rows).size).toBe(rows.length)
    expect(rows).toHaveLength(
      shown.reduce((sum, index) => sum + imageTokens(images[index]!, config), 0),
    )
  }
})

it("a template that shows fewer images than there are is no way to lose them", async () => {
  const path = sightedFolder("llava-clip")
  const spec = { path, graphs, precision: "fp32" as const, threads: 1 }
  const { folder, session } = await openDecoder(spec, () => {})
  await session.close()
  const chat = loadChatTokenizer(folder)
  const messages = [{ role: "user", content: "no mark" }]
  const parts = [[new Int32Array([-1])]]
  const images = { mark: "\u{f0005}", token: sightConfig(path)!.imageToken, parts }
  expect(await chatPrompt(chat, { messages, images }, 512)).toEqual({
    refused: expect.stringContaining("no place for all of the images"),
  })
})

it("encoded images are kept within their memory, the latest ones", () => {
  const image = (values: number) => ({
    rows: 0,
    columns: 0,
    embedded: new Float32Array(values),
  })
  const kept = encodedImages(100)
  kept.keep("a", image(10))
  kept.keep("b", image(10))
  expect(kept.get("a")).toBeDefined()
  kept.keep("c", image(10))
  expect([kept.get("a"), kept.get("b"), kept.get("c")].map(Boolean)).toEqual([true, false, true])
  kept.keep("a", image(15))
  expect(kept.bytes).toBe(100)
  kept.keep("huge", image(26))
  expect([kept.get("huge"), kept.bytes]).toEqual([undefined, 100])
})
