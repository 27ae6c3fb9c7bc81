import { Effect, Exit, Stream } from "effect"
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest"
import type { TranscribeRequest } from "../../core/ports/audio.ts"
import { contextOf, errorIn, openRemote } from "./testing/open-remote.ts"
import {
  json,
  openScripted,
  type Script,
  type ScriptedUpstream,
} from "./testing/scripted-upstream.ts"

let upstream: ScriptedUpstream
let remote: ReturnType<typeof openRemote>
beforeAll(async () => {
  upstream = await openScripted()
})
afterEach(() => remote?.close())
afterAll(() => upstream.close())

const transcribe = async (
  script: Script,
  more: Partial<TranscribeRequest> = {},
  { kind = "vllm", ...server }: Readonly<Record<string, unknown>> = {},
) => {
  upstream.play(script)
  remote = openRemote()
  const upstreams = [{ url: upstream.url, model: "whisper-1", kind, ...server }]
  const { task } = await remote.open("transcribe", { upstreams, retries: 0 })
  const call = contextOf()
  const request: TranscribeRequest = {
    audio: Buffer.from("RIFF"),
    format: "wav",
    seconds: 7,
    temperature: 0,
    segments: false,
    ...more,
  }
  const exit = await Effect.runPromiseExit(
    Effect.flatMap(task.plan(request, call.context), ({ run }) => Stream.runCollect(run)),
  )
  return {
    events: Exit.isSuccess(exit) ? exit.value : [],
    error: Exit.isFailure(exit) ? errorIn(exit.cause) : undefined,
    seconds: call.used().audioSeconds,
    notes: call.notes,
  }
}

const sentForm = async () => {
  const { body, headers } = upstream.asked[0]!
  return new Response(body.form, {
    headers: { "content-type": headers["content-type"]! },
  }).formData()
}

describe("a transcription", () => {
  it("is asked for as a form, and costs the seconds of the file", async () => {
    const { events, seconds, notes } = await transcribe(json({ text: "Halo dunia." }))
    expect(events).toEqual([{ type: "text", text: "Halo dunia." }, { type: "finish" }])
    expect([seconds, notes]).toMatchObject([7, [{ served_by: { upstream: "u1" } }]])
    expect(upstream.asked[0]?.path).toBe("/v1/audio/transcriptions")
    const { file, ...fields } = Object.fromEntries(await sentForm())
    expect(fields).toEqual({ model: "whisper-1", response_format: "json", temperature: "0" })
    expect(file).toMatchObject({ name: "audio.wav", type: "audio/wav" })
    expect(await (file as File).text()).toBe("RIFF")
  })

  it("has its times, where they are wanted", async () => {
    const segment = { id: 0, start: 0, end: 2.5, text: " Halo", avg_logprob: -0.5, tokens: [1] }
    const answer = { text: "Halo", language: "indonesian", duration: 2.5, segments: [segment] }
    const said = { language: "id", prompt: "Rakit", temperature: 0.2, format: "mp3" } as const
    const { events } = await transcribe(json(answer), { segments: true, ...said })
    expect(events).toEqual([
      { type: "text", text: " Halo", span: { start: 0, end: 2.5, avgLogprob: -0.5 } },
      { type: "finish", language: "indonesian" },
    ])
    expect(Object.fromEntries(await sentForm())).toMatchObject({
      response_format: "verbose_json",
      language: "id",
      prompt: "Rakit",
      temperature: "0.2",
      file: { name: "audio.mp3", type: "audio/mpeg" },
    })
  })

  it("of silence has no text", async () => {
    const { events } = await transcribe(json({ text: "" }), { segments: true })
    expect(events).toEqual([{ type: "finish" }])
  })

  it.each<[string, unknown]>([
    ["no text", {}],
    ["no segments", { text: "Halo" }],
    ["a segment without text", { text: "Halo", segments: [{ start: 0, end: 1 }] }],
    ["a segment without times", { text: "Halo", segments: [{ text: "Halo" }] }],
    ["times that go back", { text: "Halo", segments: [{ text: "Halo", start: 2, end: 1 }] }],
    ["an error with status 200", { error: { message: "out of memory" } }],
  ])("with %s fails, and costs nothing", async (_, answer) => {
    const { error, seconds } = await transcribe(json(answer), { segments: true })
    expect([error?.code, seconds]).toEqual(["backend_error", 0])
  })

  it("with times is refused where no server has them", async () => {
    const lacks = { lacks: ["verbose_json"] }
    const refused = await transcribe(json({}), { segments: true }, lacks)
    expect(refused.error).toMatchObject({
      code: "unsupported_parameter",
      param: "response_format",
    })
    expect(upstream.asked).toHaveLength(0)
    const { events } = await transcribe(json({ text: "Halo" }), {}, lacks)
    expect(events).toHaveLength(2)
  })
})
