import { describe, expect, test } from "vitest"
import * as templates from "../testing/chat-templates.ts"
import type { PromptMessage } from "./chat-prompt.ts"
import { promptRenderer, user } from "./testing/rendered-prompt.ts"

const { promptOf } = promptRenderer()

const weather = {
  name: "weather",
  description: "Tells the weather",
  parameters: { type: "object", properties: { city: { type: "string" } } },
}
const tools = [weather, { name: "time" }]
const calls = [
  { id: "call_1", name: "weather", arguments: '{"city":"Jakarta","days":[1, 2]}' },
  { id: "call_2", name: "time", arguments: "{}" },
]
const round: readonly PromptMessage[] = [
  user("What is it like?"),
  { role: "assistant", content: "", toolCalls: calls, reasoning: "They want the weather." },
  { role: "tool", content: "31 degrees", toolCallId: "call_1" },
  { role: "tool", content: "noon", toolCallId: "call_2" },
]
describe("calls and results of tools come back as the template writes them", () => {
  test("Hermes, Qwen2.5", async () => {
    const { text, form } = await promptOf(templates.hermesTemplate, { messages: round, tools })
    expect(form).toEqual({ syntax: "hermes", reasoning: "none", markers: {} })
    expect(text).toContain(
      '{"type": "function", "function": {"name": "weather", "description": "Tells the weather", "parameters": {"type": "object", "properties": {"city": {"type": "string"}}}}}',
    )
    expect(text).toContain(
      '<|im_start|>assistant\n<tool_call>\n{"name": "weather", "arguments": {"city": "Jakarta", "days": [1, 2]}}\n</tool_call>\n<tool_call>\n{"name": "time", "arguments": {}}\n</tool_call><|im_end|>\n',
    )
    expect(text).toContain(
      "<|im_start|>user\n<tool_response>\n31 degrees\n</tool_response>\n<tool_response>\nnoon\n</tool_response><|im_end|>\n<|im_start|>assistant\n",
    )
  })

  test("numbers of arguments are those that the model wrote, as Python writes them", async () => {
    const one = { id: "1", name: "weather", arguments: '{"n":1.0,"id":12345678901234567890}' }
    const messages = [user("?"), { role: "assistant", content: "", toolCalls: [one] }]
    const printed = "{% for m in messages %}{{ m.tool_calls[0].function.arguments }}{% endfor %}"
    const json = await promptOf(templates.hermesTemplate, { messages, tools })
    expect(json.text).toContain('{"n": 1.0, "id": 12345678901234567890}')
    const python = await promptOf(`{# tools <tool_call> #}${printed}`, {
      messages: messages.slice(1),
      tools,
    })
    expect(python.text).toBe("{'n': 1.0, 'id': 12345678901234567890}")
  })

  test("Llama: one call in a message, each with its result behind it", async () => {
    const { text, form } = await promptOf(templates.llamaTemplate, {
      messages: [...round, user("Thanks")],
      tools,
    })
    expect(form.syntax).toBe("llama")
    expect(text).toContain(
      '[assistant]{"name": "weather", "parameters": {"city": "Jakarta", "days": [1, 2]}}<|im_end|>[ipython]31 degrees<|im_end|>[assistant]{"name": "time", "parameters": {}}<|im_end|>[ipython]noon<|im_end|>[user]Thanks<|im_end|>[assistant]',
    )
    expect((await promptOf(templates.llamaTemplate, { messages: [user("a")] })).text).toBe(
      "[system]<|im_end|>[user]a<|im_end|>[assistant]",
    )
  })

  test("Mistral: ids of nine characters, the same for the call and its result", async () => {
    const { text, form } = await promptOf(
      templates.mistralTemplate,
      { messages: round, tools },
      { "[TOOL_CALLS]": 0 },
    )
    expect(form).toEqual({ syntax: "mistral", reasoning: "none", markers: { "[TOOL_CALLS]": 0 } })
    const [, id] =
      /\[\{"name": "weather", "arguments": \{"city": "Jakarta", "days": \[1, 2\]\}, "id": "(\w{9})"\}, /.exec(
        text,
      )!
    expect(text).toContain(
      `[TOOL_RESULTS]{"content": 31 degrees, "call_id": "${id}"}[/TOOL_RESULTS]`,
    )
  })

  test("SmolLM3: tools under its own name, calls as text", async () => {
    const { text, form } = await promptOf(templates.smol3Template, { messages: round, tools })
    expect(form.syntax).toBe("hermes")
    expect(text).toContain('"name": "weather"')
    expect(text).toContain(
      '<tool_call>\n{"name": "weather", "arguments": {"city":"Jakarta","days":[1, 2]}}\n</tool_call>\n<tool_call>\n{"name": "time", "arguments": {}}\n</tool_call><|im_end|>',
    )
    expect(text).toContain(
      "<|im_start|>user\n31 degrees<|im_end|>\n<|im_start|>user\nnoon<|im_end|>",
    )
  })

  test("SmolLM2, whose template knows no tools: the system text tells of them, in the form that it was trained on", async () => {
    const { text, form, before } = await promptOf(templates.smolTemplate, {
      messages: [
        { role: "system", content: "Be brief.", cacheBreakpoints: [9] },
        ...round,
        user("So?"),
      ],
      tools,
    })
    expect(form.syntax).toBe("list")
    expect(text).toContain(
      "<|im_start|>system\nBe brief.\n\nYou have access to the following functions",
    )
    expect(text).toContain('<tools>[{"type":"function","function":{"name":"weather",')
    expect(text).toContain(
      '<tool_call>[{"name": "weather", "arguments": {"city":"Jakarta","days":[1, 2]}}, {"name": "time", "arguments": {}}]</tool_call><|im_end|>',
    )
    expect(text).toContain(
      "<|im_start|>user\n<tool_response>\n31 degrees\n</tool_response>\n<tool_response>\nnoon\n</tool_response>\nSo?<|im_end|>",
    )
    expect(before).toEqual(["<|im_start|>system\nBe brief."])
    const alone = await promptOf(templates.smolTemplate, { messages: [user("a")], tools: [] })
    expect(alone.text).toBe(
      "<|im_start|>system\nYou are SmolLM.<|im_end|>\n<|im_start|>user\na<|im_end|>\n<|im_start|>assistant\n",
    )
  })

  test("templates without a system text, whose turns alternate: the first message of the user tells of the tools", async () => {
    const first = { ...user("What is it like?"), cacheBreakpoints: [4] }
    const { text, before, form } = await promptOf(templates.alternatingTemplate, {
      messages: [first, ...round.slice(1), user("So?")],
      tools,
    })
    expect(form.syntax).toBe("hermes")
    expect(text).toMatch(
      /^<user>You have access[\s\S]*What is it like\?<\|im_end\|><assistant><tool_call>[\s\S]*<user><tool_response>[\s\S]*<\/tool_response>\nSo\?<\|im_end\|><model>$/,
    )
    expect(before).toEqual([text.slice(0, text.indexOf("What is it like") + 4)])
  })

  test("templates that fail with tools: as if they knew nothing of them", async () => {
    const failing = `{%- if tools %}{{ tools | no_such_filter }}<tool_call>{%- endif %}${templates.hermesTemplate}`
    const { text, form } = await promptOf(failing, { messages: round, tools })
    expect(form.syntax).toBe("hermes")
    expect(text).toContain("You have access to the following functions")
    await expect(
      promptOf(templates.alternatingTemplate, { messages: [user("a"), user("b")], tools }),
    ).rejects.toThrow("roles must alternate")
  })

  test("arguments that are no JSON stay text", async () => {
    const broken: PromptMessage = {
      role: "assistant",
      content: "",
      toolCalls: [{ id: "1", name: "weather", arguments: '{"city' }],
    }
    expect(
      (await promptOf(templates.hermesTemplate, { messages: [user("a"), broken] })).text,
    ).toContain('"arguments": {"city}')
  })
})

describe("thinking", () => {
  const ask = { messages: [user("a")] }
  test("off, which is the default, is what the template makes of it; on, the prompt opens the reasoning", async () => {
    const off = await promptOf(templates.thinkingTemplate, ask)
    expect([off.text.endsWith("assistant\n<think>\n\n</think>\n\n"), off.form.reasoning]).toEqual([
      true,
      "none",
    ])
    const on = await promptOf(templates.thinkingTemplate, { ...ask, thinking: true })
    expect(on.text.endsWith("assistant\n<think>\n")).toBe(true)
    expect(on.form.reasoning).toBe("begun")
  })

  test("is closed at once where a template always opens it", async () => {
    const off = await promptOf(templates.alwaysThinkingTemplate, ask)
    expect(off.text.endsWith("A:<think>\n\n</think>\n\n")).toBe(true)
    expect(off.form.reasoning).toBe("none")
    const on = await promptOf(templates.alwaysThinkingTemplate, { ...ask, thinking: true })
    expect([on.text.endsWith("A:<think>\n"), on.form.reasoning]).toEqual([true, "begun"])
  })

  test("asks nothing of a template that knows none of it", async () => {
    const { text, form } = await promptOf(templates.hermesTemplate, { ...ask, thinking: true })
    expect([text.endsWith("assistant\n"), form.reasoning]).toEqual([true, "none"])
  })

  test("may be opened by the model, where a template leaves that to it", async () => {
    const { form } = await promptOf(
      templates.alwaysThinkingTemplate.replace("A:<think>\\n", "A:"),
      ask,
    )
    expect(form.reasoning).toBe("possible")
  })

  test("of earlier turns is left out, that of the turn in which tools were called is kept", async () => {
    const earlier: readonly PromptMessage[] = [
      user("hi"),
      { role: "assistant", content: "Hello", reasoning: "A greeting." },
    ]
    const { text } = await promptOf(templates.thinkingTemplate, {
      messages: [...earlier, ...round],
      tools,
      thinking: true,
    })
    expect(text).not.toContain("A greeting.")
    expect(text).toContain("<think>\nThey want the weather.\n</think>\n\n<tool_call>")
  })

  test("may be marked by control tokens", async () => {
    const { form, controls } = await promptOf(templates.thinkingTemplate, ask, {
      "<think>": 300,
      "</think>": 301,
    })
    expect(form.markers).toEqual({ "<think>": 300, "</think>": 301 })
    expect(controls).toBe(5)
  })
})
