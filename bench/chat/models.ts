import { execFileSync } from "node:child_process"
import { existsSync } from "node:fs"
import { join } from "node:path"
import { openGguf } from "../../plugins/backend-onnx/weights/gguf-file.ts"
import { root } from "../deployment/code.ts"
import { writeRandomGguf } from "./random-gguf.ts"

/**
 * The GGUF file of `--model`, of RAKIT_TEST_CHAT_MODEL, or the starter's, which `rakit models pull`
 * gets.
 */
export const chatModelPath = (given: string | undefined): string => {
  const named = given ?? process.env.RAKIT_TEST_CHAT_MODEL
  if (named) return named
  const listed = execFileSync(
    process.execPath,
    [join(root, "runtime/rakit.js"), "models", "list"],
    { cwd: root, encoding: "utf8" },
  )
  const path = listed
    .split("\n")
    .map((line) => line.trim().split(/\s+/))
    .find(([id]) => id === "svc-lyt")
    ?.at(-1)
  if (path && existsSync(path)) return path
  throw new Error(
    "name a GGUF file with --model, or pull the starter's with `npx rakit models pull config/starter.yaml`",
  )
}

/**
 * Returns the path of a file of random weights in Q4_0, with the tokenizer of another model; it is
 * written where the folder has none yet.
 */
export const randomModelIn = (folder: string, size: string, model: string): string => {
  const path = join(folder, `random-${size}.gguf`)
  if (existsSync(path)) return path
  const file = openGguf(model)
  try {
    writeRandomGguf(path, size, () => "Q4_0", file)
  } finally {
    file.close()
  }
  return path
}

export const hasPeer = existsSync(join(root, "bench/peers/node_modules/node-llama-cpp"))
