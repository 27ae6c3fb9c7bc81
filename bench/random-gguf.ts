// A GGUF file of random weights in a real shape, with the tokenizer of another file. `node --import
// tsx bench/random-gguf.ts TOKENIZER.gguf OUT.gguf [--size 135M|360M|1B] [--type Q4_0]`
import { parseArgs } from "node:util"
import { openGguf } from "../plugins/backend-onnx/weights/gguf-file.ts"
import { writeRandomGguf } from "./chat/random-gguf.ts"

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    size: { type: "string", default: "135M" },
    type: { type: "string", default: "Q4_0" },
  },
})
const [tokenizer, out] = positionals
if (!tokenizer || !out) throw new Error("name a GGUF file with a tokenizer, and the file to write")
writeRandomGguf(out, values.size, () => values.type, openGguf(tokenizer))
