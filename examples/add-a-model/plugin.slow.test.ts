import { readFileSync } from "node:fs"
import { join } from "node:path"
import { runCli } from "rakit/testing/platform"
import { expect, it } from "vitest"
import { files } from "./make-weights.ts"
import { servedExample } from "./served-example.ts"

const here = import.meta.dirname
const config = join(here, "rakit.yaml")
const { client, folder } = servedExample(config)

it("chats with the package's model", async () => {
  expect((await client().models.list()).data.map(({ id }) => id)).toEqual(["tiny"])
  const answer = await client().chat.completions.create({
    model: "tiny",
    messages: [{ role: "user", content: "Hello" }],
    max_tokens: 16,
    seed: 1,
  })
  expect(answer.usage?.completion_tokens).toBeGreaterThan(0)
  expect(answer.choices[0]?.message.content).not.toBe("")
})

it("is shown by `rakit check` and `rakit models list`, with the plugin that brings it", async () => {
  const env = { RAKIT_DATA: folder }
  const { code, stdout } = await runCli(["check", config, "--json"], env)
  expect(code).toBe(0)
  const { models, files } = JSON.parse(stdout)
  expect(models).toContainEqual(
    expect.objectContaining({ model: "tiny", window: "512", max_tokens: "256 (256)" }),
  )
  expect(files).toContainEqual({
    model: "tiny",
    from: "./plugin.ts",
    sources: `file:${join(here, "weights/")} (no digest)`,
  })
  const listed = await runCli(["models", "list", "-c", config], env)
  expect(listed.stdout).toMatch(/^tiny +chat +onnx +- +0\.1 MB +\.\/plugin\.ts +\S+weights$/m)
})

it("has the weights that make-weights.ts writes", () => {
  for (const [name, bytes] of Object.entries(files())) {
    const kept = readFileSync(join(here, "weights", name))
    if (name.endsWith(".json")) expect(JSON.parse(`${kept}`)).toEqual(JSON.parse(`${bytes}`))
    else expect(kept.equals(bytes)).toBe(true)
  }
})
