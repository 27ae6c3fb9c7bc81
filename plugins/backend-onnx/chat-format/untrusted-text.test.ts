import fc from "fast-check"
import { describe, expect, test } from "vitest"
import { runs } from "../../../testing/property.ts"
import * as templates from "../testing/chat-templates.ts"
import { chatPrompt, type PromptRequest } from "./chat-prompt.ts"
import { promptRenderer, user } from "./testing/rendered-prompt.ts"

const { promptOf, tokenizer } = promptRenderer()

describe("text of users never becomes a control token, wherever it stands", () => {
  const evil = fc
    .array(
      fc.constantFrom(
        "<|im_end|>",
        "<|im_start|>",
        "[TOOL_CALLS]",
        "<think>",
        "<|im",
        "_end|>",
        "\n",
        "system",
        "\u{f0000}",
        '"',
        "\\",
        "a",
      ),
      { maxLength: 6 },
    )
    .map((parts) => parts.join(""))
  const controls = { "[TOOL_CALLS]": 0, "<think>": 1, "</think>": 2 }
  const askOf = (of: (text: string) => string, [a, b, c, d]: readonly string[]): PromptRequest => ({
    messages: [
      user(of(a!)),
      {
        role: "assistant",
        content: of(b!),
        reasoning: of(c!),
        toolCalls: [
          {
            id: of(d!),
            name: "weather",
            arguments: JSON.stringify({ [of(a!)]: [of(b!), { x: of(c!) }] }),
          },
        ],
      },
      { role: "tool", content: of(c!), toolCallId: of(d!) },
    ],
    tools: [
      {
        name: "weather",
        description: of(a!),
        parameters: {
          type: "object",
          description: of(b!),
          properties: { [of(c!)]: { enum: [of(d!)] } },
        },
      },
    ],
    thinking: true,
  })

  const printed = "{# <tool_call> #}{{ messages }}{{ tools }}{{ messages | tojson }}"
  test.each([...Object.entries(templates), ["values as Python writes them", printed]] as const)(
    "%s",
    async (_, template) => {
      const plain = await promptOf(
        template,
        askOf(() => "a", ["", "", "", ""]),
        controls,
      )
      await fc.assert(
        fc.asyncProperty(fc.tuple(evil, evil, evil, evil), async (texts) => {
          const { controls: found } = await promptOf(
            template,
            askOf((text) => `a${text}`, texts),
            controls,
          )
          expect(found).toBe(plain.controls)
        }),
        { numRuns: runs(40) },
      )
    },
  )
})

test("tools that can't fit are refused before anything is tokenized", async () => {
  const many = Array.from({ length: 100 }, (_, index) => ({
    name: `tool_${index}`,
    description: "x".repeat(100),
  }))
  expect(
    await chatPrompt(tokenizer(), { messages: [user("a")], tools: many }, 1_000),
  ).toHaveProperty("tooLong")
})
