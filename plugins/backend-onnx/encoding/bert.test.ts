import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterAll, expect, test } from "vitest"
import { changedEncoder } from "../testing/changed-encoder.ts"
import { encoderFolder } from "../testing/fixtures.ts"
import { folderEncoder } from "./families.ts"

const root = mkdtempSync(join(tmpdir(), "rakit-bert-"))
afterAll(() => rmSync(root, { recursive: true, force: true }))

const changed = (name: string, is_decoder: unknown) =>
  changedEncoder(root, encoderFolder(name), { "config.json": { is_decoder } })

test.each(["bert", "roberta", "xlm-roberta", "bert-classifier"])(
  "a %s whose tokens see only those before them is refused",
  (name) => {
    expect(() => folderEncoder(changed(name, true))).toThrow(
      /config.json: 'is_decoder' is true; this backend runs tokens that see the whole text/,
    )
    const { config } = folderEncoder(encoderFolder(name))
    expect(folderEncoder(changed(name, false)).config).toEqual(config)
    expect(folderEncoder(changed(name, null)).config).toEqual(config)
  },
)
