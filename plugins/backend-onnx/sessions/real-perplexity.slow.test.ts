import { existsSync, mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterAll, expect, test } from "vitest"
import type { Precision } from "../onnx/linear.ts"
import { channelPrecisions } from "../testing/channel-precisions.ts"
import { perplexity, tokensOfText } from "../testing/perplexity.ts"
import { openDecoder } from "./open-decoder.ts"

// as in real-weights.test.ts; bench/perplexity.ts takes the whole text
const path = process.env.RAKIT_TEST_CHAT_MODEL ?? ""
const root = mkdtempSync(join(tmpdir(), "rakit-perplexity-"))
afterAll(() => rmSync(root, { recursive: true, force: true }))

const measured = async (precision: Precision) => {
  const decoder = await openDecoder({ path, graphs: root, precision, threads: 2 }, () => {})
  const value = await perplexity(decoder, await tokensOfText(decoder, 385))
  await decoder.session.close()
  return value
}

test.skipIf(!existsSync(path))(
  "eight and four bits cost a real model less than two percent of its perplexity",
  async () => {
    const exact = await measured("fp32")
    for (const precision of ["int8", ...channelPrecisions, "int4"] as const)
      expect((await measured(precision)) / exact).toBeLessThan(1.02)
  },
  240_000,
)
