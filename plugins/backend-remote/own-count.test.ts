import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { Effect, Stream } from "effect"
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest"
import type { ApiError } from "../../core/errors.ts"
import { chat, chatRequest, contextOf, openRemote } from "./testing/open-remote.ts"
import {
  begin,
  chunk,
  event,
  json,
  openScripted,
  type Script,
  type ScriptedUpstream,
  say,
  stream,
  usageOf,
} from "./testing/scripted-upstream.ts"

const folder = mkdtempSync(join(tmpdir(), "rakit-tokenizer-"))
const tokenizer = join(folder, "tokenizer.json")

/** A real tokenizer whose every word, or sign between words, is one token. */
const wordTokenizer = {
  version: "1.0",
  truncation: null,
  padding: null,
  added_tokens: [],
  normalizer: null,
  pre_tokenizer: { type: "Whitespace" },
  post_processor: null,
  decoder: null,
  model: { type: "WordLevel", vocab: { "[UNK]": 0 }, unk_token: "[UNK]" },
}

let upstream: ScriptedUpstream
let remote: ReturnType<typeof openRemote>
beforeAll(async () => {
  upstream = await openScripted()
  writeFileSync(tokenizer, JSON.stringify(wordTokenizer))
})
afterEach(() => remote?.close())
afterAll(async () => {
  rmSync(folder, { recursive: true })
  await upstream.close()
})

const corrections = () => ({
  metric: remote.counted("rakit_upstream_usage_corrected_total"),
  reasons: remote.log.lines.flatMap(({ event: name, fields }) =>
    name === "upstream.usage_corrected" ? [fields.reason] : [],
  ),
})

const end = chunk({}, "stop")
const words = (count: number) => "word ".repeat(count)
/** Long, so that tolerances are small beside it. */
const question = chatRequest({
  messages: [{ role: "user", content: [{ type: "text", text: words(1_000) }] }],
  maxTokens: 500,
})

const asked = async (script: Script, upstreamMore: object = {}, request = question) => {
  upstream.play(script)
  remote = openRemote()
  const upstreams = [{ url: upstream.url, model: "m", ...upstreamMore }]
  const loaded = await remote.open("chat", { upstreams, tokenizer })
  const { used, finish, error } = await chat(loaded, request)
  return { charged: [used.inputTokens, used.outputTokens], finish, error, ...corrections() }
}
/** An answer of 100 words in one piece. */
const answer = (...usage: readonly object[]) => stream(say(words(100)), end, ...usage, "[DONE]")
// 1000 words and 8 for the template; 100 words and the end
const own = [1008, 101]

describe("an own count of a chat", () => {
  it.each([
    ["usage that is right", usageOf(1_012, 101), [1_012, 101]],
    ["usage that differs as templates do", usageOf(1_060, 106), [1_060, 106]],
  ])("believes %s", async (_, usage, charged) => {
    const seen = await asked(answer(usage))
    expect(seen).toEqual({ charged, finish: "stop", error: undefined, metric: 0, reasons: [] })
  })

  it.each([
    ["no usage", [], own],
    ["usage in words", [usageOf("many", "more")], own],
    ["too much of both", [usageOf(2_000, 400)], own],
    ["too little of both", [usageOf(10, 2)], own],
    ["an answer that is too long", [usageOf(1_008, 300)], [1008, 101]],
    ["an answer that is too short", [usageOf(1_008, 60)], [1008, 101]],
    ["a prompt that is too long", [usageOf(3_900, 101)], [1008, 101]],
    ["beyond what there can be", [usageOf(1_008, 1e9)], own],
  ])("stands against %s, and says so", async (_, usage, charged) => {
    const seen = await asked(answer(...usage))
    expect([seen.charged, seen.finish, seen.metric]).toEqual([charged, "stop", 1])
    expect(seen.reasons).toHaveLength(1)
  })

  it("names both counts in the log", async () => {
    const { reasons } = await asked(answer(usageOf(2_000, 400)))
    expect(reasons).toEqual(["2000 and 400 tokens, counted here 1008 and 101"])
  })

  it("does not believe reports on the way either", async () => {
    const early = { ...say(words(100)), usage: { prompt_tokens: 4_000, completion_tokens: 490 } }
    const seen = await asked(stream(early, say("more"), end, "[DONE]"), { kind: "vllm" })
    expect([seen.charged, seen.metric]).toEqual([[1008, 102], 1])
  })

  it("leaves hidden reasoning to a server that charges it", async () => {
    const usage = usageOf(1_008, 450)
    expect((await asked(answer(usage), { kind: "openai" })).charged).toEqual([1_008, 450])
  })

  it("counts tools, calls and reasoning, and leaves pictures to the report", async () => {
    const request = {
      ...question,
      tools: [{ name: "now", parameters: { type: "object" } }],
    }
    const call = chunk({
      reasoning_content: words(50),
      tool_calls: [{ index: 0, id: "a", function: { name: "now", arguments: '{"zone":"UTC"}' } }],
    })
    const seen = await asked(stream(call, chunk({}, "tool_calls"), "[DONE]"), {}, request)
    expect(seen.charged[0]).toBeGreaterThan(1_008)
    // 50 words, `now`, the arguments in 7 and the end
    expect(seen.charged[1]).toBe(50 + 1 + 5 + 1)
    const picture = { type: "media", mediaType: "image/png", bytes: Buffer.from("png") } as const
    const shown = {
      ...question,
      messages: [{ role: "user", content: [picture] } as const],
    }
    expect((await asked(answer(usageOf(3_000, 101)), {}, shown)).charged).toEqual([3_000, 101])
  })

  it("is what a call costs that the client leaves", async () => {
    let left: Promise<unknown> | undefined
    upstream.play((res, { left: gone }) => {
      left = gone
      begin(res).write(event(say(words(30))) + event(say(words(30))))
    })
    remote = openRemote()
    const upstreams = [{ url: upstream.url, model: "m" }]
    const loaded = await remote.open("chat", { upstreams, tokenizer: folder })
    const call = contextOf()
    const { run } = await Effect.runPromise(loaded.task.plan(question, call.context))
    await Effect.runPromise(Stream.runDrain(Stream.take(run, 2)))
    await left
    expect([call.used().inputTokens, call.used().outputTokens]).toEqual([1008, 61])
  })
})

describe("a tokenizer", () => {
  it.each([
    ["that is missing", "missing.json", /missing\.json can't be read: ENOENT/],
    ["that is none", "bad.json", /bad\.json can't be read: /],
  ])("%s is named when the model is opened", async (_, name, why) => {
    writeFileSync(join(folder, "bad.json"), "{}")
    remote = openRemote()
    const upstreams = [{ url: upstream.url, model: "m" }]
    await expect(remote.open("chat", { upstreams, tokenizer: join(folder, name) })).rejects.toThrow(
      why,
    )
  })
})

describe("an own count of", () => {
  const charged = async (task: "embed" | "rerank", body: unknown) => {
    upstream.play(json(body))
    remote = openRemote()
    const upstreams = [{ url: upstream.url, model: "m" }]
    const call = contextOf()
    const texts = [words(100), words(100)]
    const options = { upstreams, tokenizer }
    const planned: Effect.Effect<{ readonly run: Stream.Stream<unknown, ApiError> }, ApiError> =
      task === "embed"
        ? (await remote.open("embed", options)).task.plan(
            { items: texts.map((text) => ({ type: "text", text })), truncate: "END" },
            call.context,
          )
        : (await remote.open("rerank", options)).task.plan(
            { query: words(10), documents: texts },
            call.context,
          )
    await Effect.runPromise(Effect.flatMap(planned, ({ run }) => Stream.runDrain(run)))
    return { tokens: call.used().inputTokens, ...corrections() }
  }
  const data = [0, 1].map((index) => ({ index, embedding: [1, 0] }))
  const results = [0, 1].map((index) => ({ index, relevance_score: 0.5 }))

  it.each([
    ["what is right", { prompt_tokens: 204 }, 204, 0],
    ["too much", { prompt_tokens: 1_000 }, 204, 1],
    ["too little", { prompt_tokens: 3 }, 204, 1],
    ["nothing", undefined, 204, 1],
  ])("embeddings judges %s", async (_, usage, tokens, metric) => {
    const seen = await charged("embed", { data, usage })
    expect([seen.tokens, seen.metric]).toEqual([tokens, metric])
  })

  it.each([
    ["what is right", { total_tokens: 230 }, 230, 0],
    ["too much", { total_tokens: 100_000 }, 220, 1],
    ["too little", { total_tokens: 7 }, 220, 1],
    ["nothing, which many servers say", undefined, 220, 0],
  ])("rerank judges %s", async (_, usage, tokens, metric) => {
    const seen = await charged("rerank", { results, usage })
    expect([seen.tokens, seen.metric]).toEqual([tokens, metric])
  })
})
