import { describe, it } from "vitest"
import { badWays } from "./testing/bad-ways.ts"
import { chat, chatRequest, openRemote } from "./testing/open-remote.ts"
import { openScripted } from "./testing/scripted-upstream.ts"

const messages = chatRequest({
  messages: [{ role: "user", content: [{ type: "text", text: "Say hello please." }] }],
  tools: [{ name: "now" }],
})

// side by side, each with its upstream: most of the time is pauses between attempts
describe.concurrent("a chat of an upstream that has", () => {
  it.for(badWays)("$name", async ({ scripts, sees, isSlow }, { expect }) => {
    const upstream = await openScripted()
    upstream.play(...scripts)
    const remote = openRemote()
    const loaded = await remote.open("chat", {
      upstreams: [{ url: upstream.url, model: "m" }],
      ...(isSlow && { firstByteTimeoutMs: 250, idleTimeoutMs: 250 }),
      ejectAfter: 100,
    })
    const seen = await chat(loaded, messages)
    await remote.close()
    const asked = upstream.asked.length
    await upstream.close()
    if (sees.text !== undefined) expect(seen.text).toBe(sees.text)
    expect(seen.error?.code).toBe(sees.error)
    if (sees.error === undefined) expect(seen.finish).toBe(sees.finish)
    // what fails is voided, whatever was metered
    const { inputTokens, outputTokens } = seen.used
    if (sees.charged && !seen.error) expect([inputTokens, outputTokens]).toEqual(sees.charged)
    if (sees.asked !== undefined) expect(asked).toBe(sees.asked)
    expect(seen.events.filter(({ type }) => type === "finish")).toHaveLength(seen.error ? 0 : 1)
  })
})
