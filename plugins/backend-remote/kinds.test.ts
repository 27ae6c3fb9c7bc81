import { afterAll, afterEach, beforeAll, expect, it } from "vitest"
import { chat, chatRequest, openRemote } from "./testing/open-remote.ts"
import {
  chunk,
  json,
  openScripted,
  type ScriptedUpstream,
  stream,
} from "./testing/scripted-upstream.ts"

let upstream: ScriptedUpstream
let remote: ReturnType<typeof openRemote>
beforeAll(async () => {
  upstream = await openScripted()
})
afterEach(() => remote?.close())
afterAll(() => upstream.close())

const openAs = (more: object) => {
  remote = openRemote()
  return remote.open("chat", { upstreams: [{ url: upstream.url, model: "m", ...more }] })
}

const llama = (supports_tools: boolean, vision: boolean) =>
  upstream.describe(json({ chat_template_caps: { supports_tools }, modalities: { vision } }))

it("a server of llama.cpp keeps tools where its chat template has a place for them", async () => {
  llama(false, true)
  const loaded = await openAs({ kind: "llamacpp" })
  expect(loaded.capabilities).toEqual(["structured_output", "thinking", "vision"])
  const { error } = await chat(loaded, chatRequest({ tools: [{ name: "now" }] }))
  expect(error).toMatchObject({ code: "unsupported_parameter", param: "tools" })
  await remote.close()
  llama(true, false)
  expect((await openAs({ kind: "llamacpp" })).capabilities).toEqual([
    "tool_use",
    "structured_output",
    "thinking",
  ])
})

it("config is right about what a server keeps, whatever it says", async () => {
  llama(false, false)
  const { capabilities } = await openAs({
    kind: "llamacpp",
    keeps: ["tools"],
    lacks: ["json_schema", "json_object"],
  })
  expect(capabilities).toEqual(["tool_use", "thinking"])
})

it("a certain tool is forced as the only one where the server can't name it", async () => {
  llama(true, false)
  const call = { index: 0, id: "a", function: { name: "now", arguments: "{}" } }
  upstream.play(stream(chunk({ tool_calls: [call] }), chunk({}, "tool_calls"), "[DONE]"))
  const tools = [{ name: "rm" }, { name: "now" }]
  const loaded = await openAs({ kind: "llamacpp" })
  const { finish } = await chat(loaded, chatRequest({ tools, toolChoice: { name: "now" } }))
  expect(finish).toBe("tool_calls")
  expect(upstream.asked[0]?.body).toMatchObject({
    tools: [{ function: { name: "now" } }],
    tool_choice: "required",
  })
})
