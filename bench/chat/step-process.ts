// Steps of a decoder in a process of its own, as RAKIT_KERNELS holds for a whole process. `node
// --import tsx bench/chat/step-process.ts PATH GRAPHS THREADS`; answers a StepTask over IPC.
import { load } from "../deployment/code.ts"
import { median } from "../measure/rounds.ts"

export interface StepTask {
  /** Sequences of a step, one token each. */
  readonly rows: number
  /** Tokens that each has behind it. */
  readonly past: number
  readonly steps: number
  /** A row that is alone is computed as it is, which rounds it otherwise than in company. */
  readonly lonelyOnce: boolean
}

export interface StepTiming {
  readonly medianMs: number
}

const { openModelSource } = await load<
  typeof import("../../plugins/backend-onnx/architectures/model-source.ts")
>("plugins/backend-onnx/architectures/model-source")
const { BuiltSession } = await load<
  typeof import("../../plugins/backend-onnx/sessions/built-session.ts")
>("plugins/backend-onnx/sessions/built-session")
const { openDecoder } = await load<
  typeof import("../../plugins/backend-onnx/sessions/open-decoder.ts")
>("plugins/backend-onnx/sessions/open-decoder")
const { runProbe } = await load<
  typeof import("../../plugins/backend-onnx/sessions/rounding-probe.ts")
>("plugins/backend-onnx/sessions/rounding-probe")

const [path, graphs, threads] = [process.argv[2]!, process.argv[3]!, Number(process.argv[4])]
// writes the graph where it is not there yet
const decoder = await openDecoder({ path, graphs, precision: "auto", threads }, () => {})
await decoder.session.close()
const { config: shape, weights } = openModelSource(path)
const embed = (ids: ArrayLike<number>) => weights.embed(ids)
const rounding = await runProbe(decoder.folder, threads, shape, embed)
const open = (lonelyTwice: boolean) =>
  BuiltSession.open(decoder.folder, threads, {
    shape,
    embed,
    rounding: { ...rounding, lonelyTwice },
  })
const sessions = { once: await open(false), probed: await open(rounding.lonelyTwice) }

const measure = async ({ rows, past, steps, lonelyOnce }: StepTask): Promise<StepTiming> => {
  const session = lonelyOnce ? sessions.once : sessions.probed
  const store = session.newStore(past + 1).another(rows, past + 1)
  const ids = Array.from({ length: rows }, (_, row) => 100 + row)
  const timesMs: number[] = []
  for (let step = 0; step < steps; step++) {
    const startedMs = performance.now()
    await session.forward({
      rows,
      count: 1,
      ids,
      pastLens: ids.map(() => past),
      ...store.rowsFrom(0, rows),
      capacity: store.capacity,
      logitsAt: ids.map((_, row) => row),
    })
    timesMs.push(performance.now() - startedMs)
  }
  store.release()
  return { medianMs: median(timesMs) }
}

process.on(
  "message",
  (task: StepTask) => void measure(task).then((timing) => process.send!(timing)),
)
process.on("disconnect", () => process.exit(0))
process.send!({ ready: true })
