import { InferenceSession, Tensor } from "onnxruntime-node"
import { guarded } from "./native-guard.ts"

export interface Session {
  run(feeds: Readonly<Record<string, Tensor>>): Promise<Readonly<Record<string, Tensor>>>
  release(): Promise<void>
}

let guard: Int32Array | undefined

/** For all sessions of this thread. */
export const guardSessions = (by: Int32Array): void => {
  guard = by
}

const create = (path: string, threads: number): Promise<InferenceSession> =>
  InferenceSession.create(path, {
    executionProviders: ["cpu"],
    intraOpNumThreads: threads,
    interOpNumThreads: 1,
    logSeverityLevel: 3,
    // spinning threads would take the core that HTTP runs on
    extra: { session: { intra_op: { allow_spinning: "0" } } },
  })

/** One session on the CPU. */
export const openSession = async (path: string, threads: number): Promise<Session> => {
  const session = await guarded(guard, () => create(path, threads))
  return {
    run: (feeds) => guarded(guard, () => session.run(feeds)) as Promise<Readonly<Record<string, Tensor>>>,
    release: () => guarded(guard, () => session.release()),
  }
}

export const floats = (values: Float32Array, shape: readonly number[]): Tensor => new Tensor("float32", values, shape)

export const longs = (values: readonly number[], shape: readonly number[] = [values.length]): Tensor => new Tensor("int64", BigInt64Array.from(values, BigInt), shape)
