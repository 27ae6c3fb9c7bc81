import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterAll, describe, expect, test } from "vitest"
import { fixtureFolder } from "../testing/fixtures.ts"
import { folderConfig } from "./folder-config.ts"

const folder = mkdtempSync(join(tmpdir(), "rakit-config-"))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

/** A fixture's config.json with these changes; `undefined` leaves a key out. */
const read = (name: string, change: Readonly<Record<string, unknown>>) => {
  const config = JSON.parse(
    readFileSync(join(fixtureFolder(name), "config.json"), "utf8"),
  ) as Readonly<Record<string, unknown>>
  writeFileSync(
    join(folder, "config.json"),
    JSON.stringify({ ...config, max_position_embeddings: 8192, ...change }),
  )
  return folderConfig(folder)
}

describe("a window that is left out is the one of the architecture's class, as transformers has it; null is none", () => {
  test.each([
    ["mistral", {}, [4096, 4096]],
    ["mistral", { sliding_window: null }, [undefined, undefined]],
    ["mistral", { sliding_window: 8 }, [8, 8]],
    [
      "qwen2",
      { use_sliding_window: true, max_window_layers: 1, layer_types: undefined },
      [undefined, 4096],
    ],
    ["qwen2", { use_sliding_window: false }, [undefined, undefined]],
    ["llama", { sliding_window: 8 }, [undefined, undefined]],
  ])("%s %j", (name, change, windows) => {
    expect(read(name, { sliding_window: undefined, ...change }).windows).toEqual(windows)
  })
})

describe("heads for keys: null is as many as heads, left out is the architecture's number", () => {
  test.each([
    ["mistral", { num_key_value_heads: null }, 4],
    ["mistral", { num_key_value_heads: undefined, num_attention_heads: 16 }, 8],
    ["llama", { num_key_value_heads: undefined }, 4],
  ])("%s %j", (name, change, kvHeads) => {
    expect(read(name, change).kvHeads).toBe(kvHeads)
  })
})
