import type { Backend } from "../../core/ports/model.ts"
import { type OnnxDeps, openModel } from "./open-model.ts"
import { wrongOptions } from "./options.ts"

/** ONNX Runtime on the CPU, in a thread of its own for each open model file. */
export const makeOnnxBackend = (deps: OnnxDeps): Backend => ({
  name: "onnx",
  tasks: ["chat", "embed", "rerank"],
  check: wrongOptions,
  open: openModel(deps),
})
