import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { badWays } from "./testing/bad-ways.ts"
import { chat, chatRequest, openRemote } from "./testing/open-remote.ts"
import { openScripted, type ScriptedUpstream } from "./testing/scripted-upstream.ts"

let upstream: ScriptedUpstream
beforeAll(async () => {
  upstream = await openScripted()
})
afterAll(() => upstream.close())

const messages = chatRequest({
  messages: [{ role: "user", content: [{ type: "text", text: "Say hello please." }] }],
  tools: [{ name: "now" }],
})

describe("a chat of an upstream that has", () => {
  it.each(badWays)("$name", async ({ scripts, sees, isSlow }) => {
    upstream.play(...scripts)
    const remote = openRemote()
    const loaded = await remote.open("chat", {
      upstreams: [{ url: upstream.url, model: "m" }],
      ...(isSlow && { firstByteTimeoutMs: 60, idleTimeoutMs: 60 }),
      ejectAfter: 100,
    })
    const seen = await chat(loaded, messages)
    await remote.close()
    if (sees.text !== undefined) expect(seen.text).toBe(sees.text)
    expect(seen.error?.code).toBe(sees.error)
    if (sees.error === undefined) expect(seen.finish).toBe(sees.finish)
    // what fails is voided, whatever was metered
    const { inputTokens, outputTokens } = seen.used
    if (sees.charged && !seen.error) expect([inputTokens, outputTokens]).toEqual(sees.charged)
    if (sees.asked !== undefined) expect(upstream.asked).toHaveLength(sees.asked)
    expect(seen.events.filter(({ type }) => type === "finish")).toHaveLength(seen.error ? 0 : 1)
  })
})
