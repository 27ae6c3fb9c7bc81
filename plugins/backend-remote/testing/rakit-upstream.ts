import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { stringify } from "yaml"
import { writeTinyModels } from "../../../testing/platform/tiny-model.ts"
import { runCli, startPlatform } from "../../../testing/platform.ts"

/** Another Rakit, with small models of random weights, as a process of its own. */
export const openRakitUpstream = async () => {
  const folder = mkdtempSync(join(tmpdir(), "rakit-upstream-"))
  const { key, hash } = JSON.parse(
    (await runCli(["keys", "hash", "--name", "one", "--json"])).stdout,
  ) as { readonly key: string; readonly hash: string }
  const config = join(folder, "rakit.yaml")
  const models = writeTinyModels(folder) as readonly {
    readonly id: string
    readonly sources: readonly { readonly url: string }[]
  }[]
  const limits = { rpm: 1_000_000, rpd: 1_000_000, concurrency: 1_000 }
  writeFileSync(
    config,
    stringify({
      dataDir: join(folder, "data"),
      server: { host: "127.0.0.1", port: 0 },
      plugins: {
        "billing-free": {},
        "identity-static": { keys: [{ name: "one", hash, limits }] },
        "backend-onnx": { threads: 1 },
        "endpoint-models": {},
        "endpoint-chat": {},
        "endpoint-embeddings": {},
        "endpoint-rerank": {},
        "endpoint-images": {},
        "endpoint-audio": {},
        // no engine of ours transcribes
        [join(import.meta.dirname, "../../../testing/fakes/backend.ts")]: {},
      },
      models: [
        ...models,
        {
          id: "transcribe",
          task: "transcribe",
          backend: "fake",
          limits: { contextTokens: 448 },
          price: { audioSecond: 1.5 },
        },
      ],
    }),
  )
  const platform = await startPlatform({ config, database: "embedded" })
  return {
    url: platform.url,
    key,
    /** The file or folder of a model. */
    filesOf: (id: string) =>
      models.find((model) => model.id === id)?.sources[0]?.url.replace("file:", "") ?? "",
    close: async () => {
      await platform.stop("SIGKILL")
      rmSync(folder, { recursive: true, force: true })
    },
  }
}
