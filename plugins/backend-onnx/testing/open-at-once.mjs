// Creates a session in each of several threads at the same moment, the first ones of the process,
// and prints why those that could not be created could not.
import { dirname, join } from "node:path"
import { fileURLToPath } from "node:url"
import { isMainThread, parentPort, Worker, workerData } from "node:worker_threads"
import { loadThread } from "../worker/load-thread.mjs"

const path = join(
  dirname(fileURLToPath(import.meta.url)),
  "../fixtures/llama-export/onnx/model.onnx",
)
const threads = 2

if (isMainThread) {
  const started = new Int32Array(new SharedArrayBuffer(4))
  const failures = Array.from({ length: threads }, () => {
    const thread = new Worker(fileURLToPath(import.meta.url), { workerData: started })
    return new Promise((resolve) => thread.once("message", resolve))
  })
  console.log(JSON.stringify((await Promise.all(failures)).filter((reason) => reason !== "")))
} else {
  const { InferenceSession } = await loadThread("onnx/runtime")
  // fails before ONNX Runtime is asked for the session, and has done by then what only first calls do
  await InferenceSession.create(path, { intraOpNumThreads: -1 }).catch(() => {})
  Atomics.add(workerData, 0, 1)
  while (Atomics.load(workerData, 0) < threads);
  const reason = await InferenceSession.create(path).then(
    () => "",
    (cause) => cause.message,
  )
  parentPort.postMessage(reason)
}
