import type { Plugin } from "../core/plugin.ts"
import type { Command } from "../core/ports/command.ts"
import { command as batchRun } from "./endpoint-batches/command.ts"
import { command as retrievalAudit } from "./endpoint-retrieval/command.ts"
import { command as keysHash } from "./identity-static/command.ts"

type Load = () => Promise<{ readonly plugin: Plugin }>

/**
 * The one visible list of built-in plugins. A name is loaded only when a config file uses it;
 * others load by package name or path.
 */
export const builtinPlugins: Readonly<Record<string, Load>> = {
  accounts: () => import("./accounts/plugin.ts"),
  "backend-onnx": () => import("./backend-onnx/plugin.ts"),
  "backend-remote": () => import("./backend-remote/plugin.ts"),
  "backend-webgpu": () => import("./backend-webgpu/plugin.ts"),
  "billing-free": () => import("./billing-free/plugin.ts"),
  "billing-ledger": () => import("./billing-ledger/plugin.ts"),
  chaos: () => import("./chaos/plugin.ts"),
  dashboard: () => import("./dashboard/plugin.ts"),
  "database-postgres": () => import("./database-postgres/plugin.ts"),
  docs: () => import("./docs/plugin.ts"),
  "endpoint-audio": () => import("./endpoint-audio/plugin.ts"),
  "endpoint-batches": () => import("./endpoint-batches/plugin.ts"),
  "endpoint-chat": () => import("./endpoint-chat/plugin.ts"),
  "endpoint-embeddings": () => import("./endpoint-embeddings/plugin.ts"),
  "endpoint-files": () => import("./endpoint-files/plugin.ts"),
  "endpoint-images": () => import("./endpoint-images/plugin.ts"),
  "endpoint-models": () => import("./endpoint-models/plugin.ts"),
  "endpoint-rerank": () => import("./endpoint-rerank/plugin.ts"),
  "endpoint-retrieval": () => import("./endpoint-retrieval/plugin.ts"),
  "idempotency-postgres": () => import("./idempotency-postgres/plugin.ts"),
  "identity-static": () => import("./identity-static/plugin.ts"),
  "mail-smtp": () => import("./mail-smtp/plugin.ts"),
  "model-commands": () => import("./model-commands/plugin.ts"),
  "model-iris": () => import("./model-iris/plugin.ts"),
  "model-minilm-reranker": () => import("./model-minilm-reranker/plugin.ts"),
  "model-minilm-vision": () => import("./model-minilm-vision/plugin.ts"),
  "model-smollm2-vision": () => import("./model-smollm2-vision/plugin.ts"),
  "queue-postgres": () => import("./queue-postgres/plugin.ts"),
  "safety-images": () => import("./safety-images/plugin.ts"),
  "signing-keys": () => import("./signing-keys/plugin.ts"),
  "storage-disk": () => import("./storage-disk/plugin.ts"),
  "storage-s3": () => import("./storage-s3/plugin.ts"),
  "webhook-http": () => import("./webhook-http/plugin.ts"),
}

/**
 * The commands that built-in plugins bring to `rakit`, whether a config file names the plugin or
 * not. Loaded with `--help`, so they are data.
 */
export const builtinCommands: readonly Command[] = [batchRun, keysHash, retrievalAudit]
