import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { runCli, startPlatform } from "../../testing/platform.ts"

/** From nothing to the first token of a file of one's own; ms of each step. */
export interface OwnModel {
  readonly initMs: number
  readonly checkMs: number
  /** From spawn until the model is open. */
  readonly readyMs: number
  readonly firstTokenMs: number
  readonly allMs: number
}

const succeeded = async (args: readonly string[]): Promise<string> => {
  const { code, stdout, stderr } = await runCli(args)
  if (code !== 0) throw new Error(`rakit ${args.join(" ")} ended with ${code}: ${stderr}`)
  return stdout
}

/** Waits for the first piece of a streamed answer. */
const firstToken = async (url: string, key: string): Promise<void> => {
  const listed = await fetch(`${url}/v1/models`).then((reply) => reply.json())
  const { data } = listed as { readonly data: readonly { readonly id: string }[] }
  const reply = await fetch(`${url}/v1/chat/completions`, {
    method: "POST",
    headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
    body: JSON.stringify({
      model: data[0]?.id,
      messages: [{ role: "user", content: "Why is the sky blue?" }],
      max_tokens: 16,
      stream: true,
    }),
  })
  if (!reply.ok || !reply.body) throw new Error(`${reply.status} ${await reply.text()}`)
  let text = ""
  for await (const piece of reply.body) {
    text += Buffer.from(piece).toString()
    if (/"content":"[^"]/.test(text)) return
  }
  throw new Error(`no token came: ${text}`)
}

/** `rakit init` with a path, `check`, `keys hash`, `serve`, and a call. */
export const serveOwnModel = async (model: string): Promise<OwnModel> => {
  const folder = mkdtempSync(join(tmpdir(), "rakit-first-hour-"))
  const config = join(folder, "rakit.yaml")
  try {
    const startedMs = performance.now()
    const sinceMs = () => performance.now() - startedMs
    await succeeded(["init", config, "-y", "-s", "chat", "-m", model, "-d", "none"])
    const initMs = sinceMs()
    await succeeded(["check", config])
    const checkMs = sinceMs() - initMs
    const { key, hash } = JSON.parse(await succeeded(["keys", "hash", "--json"])) as {
      readonly key: string
      readonly hash: string
    }
    const spawnedMs = sinceMs()
    const server = await startPlatform({
      config,
      database: "embedded",
      dataDir: join(folder, "data"),
      env: { RAKIT_KEY_HASH: hash },
    })
    try {
      const readyMs = sinceMs() - spawnedMs
      const askedMs = sinceMs()
      await firstToken(server.url, key)
      const allMs = sinceMs()
      return { initMs, checkMs, readyMs, firstTokenMs: allMs - askedMs, allMs }
    } finally {
      await server.close()
    }
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}
