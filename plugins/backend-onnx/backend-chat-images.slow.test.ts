import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import type { ChatMessage, ChatRequest, LoadedModel, Part } from "../../core/ports/model.ts"
import { brokenImages } from "../../testing/images.ts"
import { CachedDecoder } from "./generation/cached-decoder.ts"
import { openDecoder } from "./sessions/open-decoder.ts"
import { TokenPlaces } from "./sessions/token-places.ts"
import { answer, chatRequest, context, failureOf, openBackend } from "./testing/open-backend.ts"
import { drawnPng, expectedSight, sightedFolder, sightedModels } from "./testing/sighted.ts"
import { sightConfig } from "./vision/sight-config.ts"

const graphs = mkdtempSync(join(tmpdir(), "rakit-sighted-"))
const backend = openBackend({ speculation: false })
afterAll(async () => {
  await backend.close()
  rmSync(graphs, { recursive: true, force: true })
})

const openChat = (name: string, more: object = {}) =>
  backend.open("chat", sightedFolder(name), { options: { precision: "fp32" }, ...more })

const picture = async (width: number, height: number): Promise<Part> => ({
  type: "media",
  mediaType: "image/png",
  bytes: await drawnPng(width, height),
})

describe.each(sightedModels)("%s", (name) => {
  const { images, chats } = expectedSight(name)
  const { imageToken } = sightConfig(sightedFolder(name))!
  const spec = { path: sightedFolder(name), graphs, precision: "fp32" as const, threads: 1 }

  it("reads rows in place of tokens as transformers does, in any chunks", async () => {
    const { session } = await openDecoder(spec, () => {})
    const decoder = new CachedDecoder(session)
    for (const { ids, images: shown, greedy } of chats)
      for (const chunk of [64, 7]) {
        const rows = shown.flatMap((index) => images[index]!.embedded)
        const places = [...ids.keys()].filter((at) => ids[at] === imageToken)
        const at = new Map(rows.map((row, i) => [places[i]!, Float32Array.from(row)]))
        expect(places).toHaveLength(rows.length)
        const grids = shown.map((index) => images[index]!)
        const placed = ids.map((id, i) => (at.has(i) ? -1 : id))
        const hasGrids = session.shape.sections !== undefined
        const cache = decoder.newCache(
          1,
          hasGrids ? { places: new TokenPlaces(placed, grids) } : {},
        )
        let logits = new Float32Array()
        for (let from = 0; from < ids.length; from += chunk) {
          const part = ids.slice(from, from + chunk).map((id, i) => (at.has(from + i) ? -1 : id))
          const embedded = new Map(
            part.flatMap((_, i) => (at.has(from + i) ? [[i, at.get(from + i)!] as const] : [])),
          )
          const isLast = from + chunk >= ids.length
          logits = new Float32Array(await decoder.read(cache, part, isLast, embedded))
        }
        const written: number[] = []
        while (written.length < greedy.length) {
          written.push(logits.indexOf(Math.max(...logits)))
          logits = new Float32Array(await decoder.forward(cache, [written.at(-1)!], true))
        }
        expect(written).toEqual(greedy)
      }
    await session.close()
  })

  it("answers about images as transformers does", async () => {
    const model = await openChat(name)
    expect(model.modalities).toEqual(["text", "image", "video"])
    expect(model.capabilities).toContain("vision")
    const { bytesOf, endTokens, session } = await openDecoder(spec, () => {})
    for (const { messages, images: shown, ids, greedy } of chats) {
      const order = [...shown]
      const asked: ChatMessage[] = []
      for (const { role, content } of messages) {
        const parts: Part[] = []
        for (const part of content) {
          const image = part.type === "image" ? images[order.shift()!]! : undefined
          parts.push(
            image
              ? await picture(image.width, image.height)
              : { type: "text", text: part.text ?? "" },
          )
        }
        asked.push({ role, content: parts })
      }
      const { text, usage, plan } = await answer(
        model,
        chatRequest("", { messages: asked, maxTokens: greedy.length }),
      )
      const imageTokens = shown.reduce((sum, index) => sum + images[index]!.embedded.length, 0)
      expect(plan.bound).toMatchObject({ inputTokens: ids.length, imageTokens })
      expect(usage).toMatchObject({ inputTokens: ids.length, imageTokens })
      const end = greedy.findIndex((id) => endTokens.has(id))
      const bytes = (end < 0 ? greedy : greedy.slice(0, end)).map((id) => bytesOf(id))
      // pixels differ a little, so later tokens may
      expect(text.slice(0, 2)).toBe(Buffer.concat(bytes).toString().slice(0, 2))
    }
    await session.close()
  })
})

describe.each(["qwen2-vl", "qwen2-5-vl"])("%s, which knows rows and columns", (name) => {
  it("gives the same answers alone, beside others and from the prefix cache", async () => {
    const model = await openChat(name)
    const text = (content: string): Part => ({ type: "text", text: content })
    const one = async (content: readonly Part[], more: Partial<ChatRequest> = {}) => ({
      ...chatRequest("", { messages: [{ role: "user", content }], maxTokens: 24 }),
      ...more,
    })
    const [wide, tall] = [await picture(301, 200), await picture(57, 211)]
    const all = [
      await one([wide, text("What is it?")]),
      await one([text("yes or no?")]),
      await one([text("Which? "), tall, text(" or "), wide]),
      await one([wide, text("What is it?")], { answers: 2 }),
      await one([text("Where are they?")]),
    ]
    const alone: string[] = []
    for (const request of all) alone.push((await answer(model, request)).text)
    const fresh = await openChat(name, { options: { precision: "fp32", queueWaitMs: 60_000 } })
    const other = (at: number) => context({ tenant: { account: `${at}`, mode: "live" } })
    const together = await Promise.all(all.map((request, at) => answer(fresh, request, other(at))))
    const textsOf = (texts: readonly string[]) => texts.filter((_, at) => at !== 3)
    expect(textsOf(together.map((each) => each.text))).toEqual(textsOf(alone))
    // both answers of one prompt
    expect(together[3]!.events.filter(({ type }) => type === "finish")).toHaveLength(2)
    const before = model.stats!().prefixCacheHits ?? 0
    const again = await answer(model, all[2]!)
    expect(again.text).toBe(alone[2])
    expect((model.stats!().prefixCacheHits ?? 0) - before).toBe(again.usage.inputTokens - 1)
    // a longer prompt with the same beginning
    const longer = await one([text("Which? "), tall, text(" or "), wide, text(" Is it red?")])
    const [cold, warm] = [await answer(fresh, longer, other(9)), await answer(model, longer)]
    expect(warm.text).toBe(cold.text)
  })
})

describe("a model that sees", () => {
  let model: LoadedModel<"chat">
  beforeAll(async () => {
    model = await openChat("idefics3")
  })
  const asking = async (text: string, more: Partial<ChatRequest> = {}): Promise<ChatRequest> =>
    chatRequest("", {
      messages: [{ role: "user", content: [await picture(301, 200), { type: "text", text }] }],
      ...more,
    })

  it("encodes a repeated image once, and reads its prompt from the prefix cache", async () => {
    const first = await answer(model, await asking("Is it red?"))
    expect(first.metered.stages).toContain("images")
    const queries = model.stats!()
    const second = await answer(model, await asking("Is it red?"))
    const { prefixCacheHits = 0 } = model.stats!()
    expect(second.text).toBe(first.text)
    expect(prefixCacheHits - (queries.prefixCacheHits ?? 0)).toBe(first.usage.inputTokens - 1)
    const other = context({ tenant: { account: "b", mode: "live" } })
    const before = model.stats!().prefixCacheHits ?? 0
    const third = await answer(model, await asking("Is it red?"), other)
    expect(third.text).toBe(first.text)
    expect((model.stats!().prefixCacheHits ?? 0) - before).toBe(0)
  })

  it("looks less closely at an image with little detail, and keeps both apart", async () => {
    const tokensOf = async (of: LoadedModel<"chat">, detail?: "low" | "high", side = 301) => {
      const media = { ...(await picture(side, side)), ...(detail && { detail }) } as Part
      const content = [media, { type: "text", text: "Is it red?" } as const]
      const request = chatRequest("", { messages: [{ role: "user", content }] })
      const { usage, text } = await answer(of, request)
      return { tokens: usage.imageTokens, text }
    }
    const [plain, low, high] = [
      await tokensOf(model),
      await tokensOf(model, "low"),
      await tokensOf(model, "high"),
    ]
    expect([plain.tokens, low.tokens, high.tokens]).toEqual([40, 4, 40])
    expect(high.text).toBe(plain.text)
    expect((await tokensOf(model, "low")).text).toBe(low.text)
    const llava = await openChat("llava-clip")
    expect((await tokensOf(llava, "low")).tokens).toBe((await tokensOf(llava)).tokens)
  })

  it("tells images of one size apart", async () => {
    const bytes = await drawnPng(301, 200)
    const turned = Buffer.from(await (await import("sharp")).default(bytes).flop().png().toBuffer())
    const request = await asking("Is it red?")
    await answer(model, request)
    const before = model.stats!().prefixCacheHits ?? 0
    const media = { type: "media", mediaType: "image/png", bytes: turned } as const
    await answer(model, {
      ...request,
      messages: [{ role: "user", content: [media, { type: "text", text: "Is it red?" }] }],
    })
    // what stands before the first row of the image
    expect((model.stats!().prefixCacheHits ?? 0) - before).toBeLessThan(12)
  })

  it("keeps to a form, writes several answers and penalizes repetition beside images", async () => {
    const choices = ["red", "green"] as const
    const one = await answer(
      model,
      await asking("?", { responseFormat: { type: "choice", choices } }),
    )
    expect(choices).toContain(one.text)
    const seeded = { temperature: 1, topP: 1, frequencyPenalty: 0, presencePenalty: 0, seed: 5 }
    const sampling = { ...seeded, repetitionPenalty: 1.3 }
    const two = await answer(model, await asking("?", { answers: 2, sampling }))
    expect(two.events.filter(({ type }) => type === "finish")).toHaveLength(2)
  })

  it("counts cached tokens up to an image with a breakpoint", async () => {
    const request = await asking("Which colour is the circle on the left of all of these lines?")
    const [{ content }] = request.messages as [ChatMessage]
    const marked = { ...content[0]!, cacheBreakpoint: true } as Part
    const shown = [await picture(200, 301), await picture(300, 220), marked, content[1]!]
    const again = { ...request, messages: [{ role: "user" as const, content: shown }] }
    const cold = await answer(model, again)
    const warm = await answer(model, again)
    expect(cold.usage.cacheWriteTokens).toBeGreaterThan(101)
    expect(warm.usage.cacheReadTokens).toBe(cold.usage.cacheWriteTokens)
    expect(warm.text).toBe(cold.text)
  })

  it("takes text that looks like an image's token as text", async () => {
    const { plan } = await answer(model, chatRequest("<image> <global-img>"))
    expect(plan.bound.imageTokens).toBe(0)
    const split = await asking("age>")
    const { text: _, ...image } = split.messages[0]!.content[0] as never as Record<string, unknown>
    const content = [{ type: "text", text: "<im" }, image, { type: "text", text: "age>" }] as never
    const joined = await answer(model, { ...split, messages: [{ role: "user", content }] })
    expect(joined.plan.bound.imageTokens).toBe(7 * 4)
  })

  it("refuses what is no image by its path, and more of it than the window holds", async () => {
    for (const [what, bytes] of Object.entries(await brokenImages())) {
      const media = { type: "media", mediaType: "image/png", bytes } as const
      const request = chatRequest("", {
        messages: [{ role: "user", content: [{ type: "text", text: "a" }, media] }],
      })
      const error = await failureOf(model.task.plan(request, context()))
      const param = "messages[0].content[1].image_url.url"
      expect([what, error.code, error.param]).toEqual([what, "invalid_request_error", param])
    }
    const small = await openChat("idefics3", { contextTokens: 128 })
    const many = await Promise.all(Array.from({ length: 5 }, () => picture(301, 200)))
    const request = chatRequest("", { messages: [{ role: "user", content: many }] })
    expect(await failureOf(small.task.plan(request, context()))).toMatchObject({
      code: "context_length_exceeded",
      param: "messages[0].content[4].image_url.url",
    })
  })

  it("reads texts only where its entry says so", async () => {
    const blind = await openChat("idefics3", { modalities: ["text"] })
    expect(blind.modalities).toEqual(["text"])
    const error = await failureOf(blind.task.plan(await asking("?"), context()))
    expect(error).toMatchObject({ code: "unsupported_parameter", param: "messages" })
    const { plan } = await answer(blind, chatRequest("yes or no?"))
    const text = expectedSight("idefics3").chats[3]!
    expect(plan.bound.inputTokens).toBe(text.ids.length)
  })
})
