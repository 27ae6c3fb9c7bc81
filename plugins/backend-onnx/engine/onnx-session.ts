import { InferenceSession, Tensor } from "onnxruntime-node"

export type Session = InferenceSession

/** One session on the CPU. Spinning threads would take the core that HTTP runs on. */
export const openSession = (path: string, threads: number): Promise<Session> =>
  InferenceSession.create(path, {
    executionProviders: ["cpu"],
    intraOpNumThreads: threads,
    interOpNumThreads: 1,
    logSeverityLevel: 3,
    extra: { session: { intra_op: { allow_spinning: "0" } } },
  })

export const floats = (values: Float32Array, shape: readonly number[]): Tensor => new Tensor("float32", values, shape)

export const longs = (values: readonly number[], shape: readonly number[] = [values.length]): Tensor => new Tensor("int64", BigInt64Array.from(values, BigInt), shape)
