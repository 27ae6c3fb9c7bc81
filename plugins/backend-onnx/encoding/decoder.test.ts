import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterAll, expect, test } from "vitest"
import { changedEncoder } from "../testing/changed-encoder.ts"
import { encoderFolder } from "../testing/fixtures.ts"
import { folderEncoder } from "./families.ts"

const root = mkdtempSync(join(tmpdir(), "rakit-decoder-"))
afterAll(() => rmSync(root, { recursive: true, force: true }))

const configOf = (name: string, use_bidirectional_attention: unknown) =>
  folderEncoder(
    changedEncoder(root, encoderFolder(name), { "config.json": { use_bidirectional_attention } }),
  ).config

test("EmbeddingGemma's key for attention in both directions is refused of other families", () => {
  expect(configOf("gemma3-embedding", true)).toMatchObject({ isCausal: false })
  expect(() => configOf("qwen3-embedding", true)).toThrow(
    /config.json: 'use_bidirectional_attention' is true, which/,
  )
  for (const value of [false, null])
    expect(configOf("qwen3-embedding", value)).toMatchObject({ isCausal: true })
})

test("tokens see what follows where 'is_causal' is there and not true", () => {
  const causal = (change: object) =>
    folderEncoder(changedEncoder(root, encoderFolder("qwen3-embedding"), { "config.json": change }))
      .config
  expect(causal({ is_causal: true })).toMatchObject({ isCausal: true })
  for (const is_causal of [false, null])
    expect(causal({ is_causal })).toMatchObject({ isCausal: false })
})
