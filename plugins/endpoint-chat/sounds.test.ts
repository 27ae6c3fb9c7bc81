import type OpenAI from "openai"
import { afterEach, expect, it } from "vitest"
import { usageOf } from "../../core/usage.ts"
import { usageNow } from "./reply-encoding.ts"
import { maxSounds } from "./sounds.ts"
import { type ClientFixture, openClient } from "./testing/open-client.ts"

const wav = Buffer.concat([Buffer.from("RIFF\0\0\0\0WAVEfmt "), Buffer.alloc(40)])
const mp3 = Buffer.from([0xff, 0xfb, 0x90, 0x00, ...Array(40).fill(0)])

let fixture: ClientFixture
afterEach(() => fixture?.deps.close())
const open = async (modalities: readonly string[] = ["text", "audio"]) => {
  fixture = await openClient({ entry: { modalities } })
  return fixture.client
}

const block = (
  bytes: Buffer | string,
  format: "wav" | "mp3" = "wav",
): OpenAI.ChatCompletionContentPart => ({
  type: "input_audio",
  input_audio: { data: typeof bytes === "string" ? bytes : bytes.toString("base64"), format },
})
const asked = (...content: OpenAI.ChatCompletionContentPart[]) => ({
  model: "svc-lyt",
  messages: [
    { role: "user" as const, content: [{ type: "text" as const, text: "a" }, ...content] },
  ],
})
const refusalOf = async (work: Promise<unknown>) => {
  const { status, param, message } = (await work.then(
    () => ({ status: 200 }),
    (cause: unknown) => cause,
  )) as { status: number; param?: string; message?: string }
  return { status, param, message: message ?? "" }
}

it("sounds reach the model in their places, as base64 and as data URIs", async () => {
  const client = await open()
  const cached = { ...block(mp3, "mp3"), cache_control: { type: "ephemeral" } }
  const uri = `data:audio/wav;base64,${wav.toString("base64")}`
  await client.chat.completions.create(asked(block(uri), cached as never))
  const [run] = fixture.model.runs
  const parts = run!.request.messages[0]!.content.map((part) =>
    part.type === "media" ? { ...part, bytes: Buffer.from(part.bytes) } : part,
  )
  expect(parts).toEqual([
    { type: "text", text: "a" },
    { type: "media", mediaType: "audio/wav", bytes: wav },
    { type: "media", mediaType: "audio/mpeg", bytes: mp3, cacheBreakpoint: true },
  ])
})

it.each([
  ["no base64", asked(block("?!")), "messages[0].content[1].input_audio.data", /base64/],
  ["another format", asked(block(mp3)), "messages[0].content[1].input_audio.data", /no WAV/],
  [
    "a cut header",
    asked(block(mp3.subarray(0, 1), "mp3")),
    "messages[0].content[1].input_audio.data",
    /no MP3/,
  ],
  [
    "an unknown format",
    asked({ type: "input_audio", input_audio: { data: "AA==", format: "flac" } } as never),
    "messages[0].content[1].input_audio.format",
    /wav/,
  ],
  [
    "too many",
    asked(...Array.from({ length: maxSounds + 1 }, () => block(wav))),
    `messages[0].content[${maxSounds + 1}]`,
    /8 sounds/,
  ],
] as const)("%s is refused with its path", async (_, body, param, why) => {
  const client = await open()
  const refusal = await refusalOf(client.chat.completions.create(body))
  expect(refusal).toMatchObject({ status: 400, param })
  expect(refusal.message).toMatch(why)
  expect(fixture.model.runs).toEqual([])
})

it("a model that hears nothing refuses them by name, and one that hears refuses images", async () => {
  const deaf = await open(["text", "image"])
  expect(await refusalOf(deaf.chat.completions.create(asked(block(wav))))).toMatchObject({
    status: 400,
    param: "messages[0].content[1]",
    message: expect.stringMatching(/takes text and image only, not sounds/),
  })
  await fixture.deps.close()
  const blind = await open()
  const image = { type: "image_url", image_url: { url: "data:image/png;base64,AA==" } } as const
  expect(await refusalOf(blind.chat.completions.create(asked(image)))).toMatchObject({
    status: 400,
    param: "messages[0].content[1].image_url",
  })
})

it("their tokens are counted as such", () => {
  const used = () => ({ m: usageOf({ inputTokens: 50, imageTokens: 32 }) })
  const usage = usageNow({ used, cost: () => 0n }, "m", { isOfSounds: true })
  expect(usage.prompt_tokens_details).toEqual({ cached_tokens: 0, audio_tokens: 32 })
})
