import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterAll, describe, expect, test } from "vitest"
import { linearlyScaled, type Rotary } from "../architectures/rotary.ts"
import { changedEncoder } from "../testing/changed-encoder.ts"
import { encoderFolder } from "../testing/fixtures.ts"
import { folderEncoder } from "./families.ts"

const root = mkdtempSync(join(tmpdir(), "rakit-modernbert-"))
afterAll(() => rmSync(root, { recursive: true, force: true }))

const changed = (config: object, name = "modernbert") =>
  changedEncoder(root, encoderFolder(name), { "config.json": config })

const rotaryOf = (config: object) =>
  (folderEncoder(changed(config)).config as unknown as { rotary: Record<string, Rotary> }).rotary

describe("rope_scaling, the form of transformers 4", () => {
  const plain = rotaryOf({})
  const slower = {
    global: { rotations: linearlyScaled(plain.global!.rotations, 4) },
    local: { rotations: linearlyScaled(plain.local!.rotations, 4) },
  }

  test.each([
    { rope_type: "linear", factor: 4 },
    { type: "linear", factor: 4 },
  ])("%o slows both kinds of layers", (rope_scaling) => {
    expect(rotaryOf({ rope_scaling })).toEqual(slower)
  })

  test("comes before what rope_parameters say of a kind", () => {
    const kind = { rope_type: "default", rope_theta: 10_000 }
    const rope_parameters = { sliding_attention: kind }
    expect(rotaryOf({ rope_parameters, rope_scaling: { rope_type: "linear", factor: 4 } })).toEqual(
      slower,
    )
  })

  test("of null is none, and one of an unknown type is refused", () => {
    expect(rotaryOf({ rope_scaling: null })).toEqual(plain)
    expect(() => rotaryOf({ rope_scaling: { rope_type: "yarn", factor: 4 } })).toThrow(
      /config.json: its rotary embedding is scaled by 'yarn'/,
    )
  })
})
