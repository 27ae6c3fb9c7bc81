import { execFileSync } from "node:child_process"
import { existsSync } from "node:fs"
import { join } from "node:path"
import { openGguf } from "../../plugins/backend-onnx/weights/gguf-file.ts"
import { root } from "../deployment/code.ts"
import { toQ4Zero } from "./requantize.ts"

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

export const requantized = (path: string, folder: string): string => {
  const copy = join(folder, "q4_0.gguf")
  const file = openGguf(path)
  try {
    toQ4Zero(file, copy)
  } finally {
    file.close()
  }
  return copy
}

export const hasPeer = existsSync(join(root, "bench/peers/node_modules/node-llama-cpp"))
