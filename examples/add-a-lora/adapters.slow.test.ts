import { readFileSync } from "node:fs"
import { join } from "node:path"
import { runCli } from "rakit/testing/platform"
import { expect, it } from "vitest"
import { servedExample } from "../add-a-model/served-example.ts"
import { files } from "./make-adapter.ts"

const here = import.meta.dirname
const config = join(here, "rakit.yaml")
const { client, folder } = servedExample(config)

const ask = async (model: string, more: object = {}) => {
  const answer = await client().chat.completions.create({
    model,
    messages: [{ role: "user", content: "Hello" }],
    temperature: 0,
    max_tokens: 16,
    ...more,
  })
  return { model: answer.model, text: answer.choices[0]?.message.content }
}

it("answers with the LoRA and without, side by side", async () => {
  expect((await client().models.list()).data.map(({ id }) => id)).toEqual(["tiny", "tiny:accent"])
  const [plain, accent] = await Promise.all([ask("tiny"), ask("tiny:accent")])
  expect([plain.model, accent.model]).toEqual(["tiny", "tiny:accent"])
  expect(accent.text).not.toBe(plain.text)
  expect(await ask("tiny", { adapter: "accent" })).toEqual(accent)
  expect((await ask("tiny", { adapter: { id: "accent", strength: 0 } })).text).toBe(plain.text)
})

it("is shown by `rakit check`", async () => {
  const { code, stdout } = await runCli(["check", config], { RAKIT_DATA: folder })
  expect(code).toBe(0)
  expect(stdout).toMatch(/^tiny:accent +chat +onnx +512 .*add-a-lora\/adapter\//m)
})

it("has the weights that make-adapter.ts writes", () => {
  for (const [name, bytes] of Object.entries(files())) {
    const kept = readFileSync(join(here, "adapter", name))
    if (name.endsWith(".json")) expect(JSON.parse(`${kept}`)).toEqual(JSON.parse(`${bytes}`))
    else expect(kept.equals(bytes)).toBe(true)
  }
})
