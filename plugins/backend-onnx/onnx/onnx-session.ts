import { guarded } from "./native-guard.ts"
import { InferenceSession, Tensor } from "./runtime.ts"

/** Name, type and shape of an input or output of a graph; symbolic dimensions have a name. */
export interface Port {
  readonly name: string
  readonly type: string
  readonly shape: readonly (number | string)[]
}

type Tensors = Readonly<Record<string, Tensor>>

export interface Session {
  readonly inputs: readonly Port[]
  readonly outputs: readonly Port[]
  /** `fetches`: tensors that outputs are written to, of their exact shapes; null: new ones. */
  run(feeds: Tensors, fetches?: Readonly<Record<string, Tensor | null>>): Promise<Tensors>
  release(): Promise<void>
}

let guard: Int32Array | undefined

/** Guards all sessions of this thread. */
export const guardSessions = (by: Int32Array): void => {
  guard = by
}

export interface SessionOptions {
  /**
   * How long a thread stays awake for the next operator; 0 by default, as threads that are awake
   * occupy the cores of others.
   */
  readonly spinUs?: number
  /**
   * Whether a run allocates what the last one of the same shapes took as one block: faster where runs
   * are short, but what the first run allocated stays beside it. True by default.
   */
  readonly memoryPattern?: boolean
  /** Outputs stay on the device. */
  readonly keepsOutputs?: boolean
}

const spinning = (spinUs: number) =>
  spinUs > 0 ? { spin_duration_us: String(spinUs) } : { allow_spinning: "0" }

const create = (
  path: string,
  threads: number,
  { spinUs = 0, memoryPattern = true }: SessionOptions,
): Promise<InferenceSession> =>
  InferenceSession.create(path, {
    executionProviders: ["cpu"],
    intraOpNumThreads: threads,
    interOpNumThreads: 1,
    logSeverityLevel: 3,
    enableMemPattern: memoryPattern,
    extra: { session: { intra_op: spinning(spinUs) } },
  })

const portsOf = (metadata: readonly InferenceSession.ValueMetadata[]): readonly Port[] =>
  metadata.map((value) =>
    value.isTensor ? value : { name: value.name, type: "no tensor", shape: [] },
  )

/** Opens a session with this number of intra-op threads. */
export type OpenSession = (
  path: string,
  threads: number,
  options?: SessionOptions,
) => Promise<Session>

/** The binding's own copies of outputs that were given memory are empty where native kernels are. */
const withGiven = (made: Tensors, fetches: Readonly<Record<string, Tensor | null>>): Tensors => {
  const outputs: Record<string, Tensor> = { ...made }
  for (const [name, tensor] of Object.entries(fetches)) if (tensor) outputs[name] = tensor
  return outputs
}

const openOnCpu: OpenSession = async (path, threads, options = {}) => {
  const session = await guarded(guard, () => create(path, threads, options))
  return {
    inputs: portsOf(session.inputMetadata),
    outputs: portsOf(session.outputMetadata),
    run: async (feeds, fetches) => {
      const made = await guarded(guard, () =>
        fetches ? session.run(feeds, fetches) : session.run(feeds),
      )
      return withGiven(made as Tensors, fetches ?? {})
    },
    release: () => guarded(guard, () => session.release()),
  }
}

/** What a device's process lends to the engines in it. */
export interface DeviceSessions {
  readonly openSession: OpenSession
}

let opener = openOnCpu

/** Lets all sessions of this process, which is the device's, run on the device. */
export const useDevice = (sessions: DeviceSessions): void => {
  opener = sessions.openSession
}

/** Opens a session on the CPU, or on the device whose process this is. */
export const openSession: OpenSession = (path, threads, options) => opener(path, threads, options)

export const floats = (values: Float32Array, shape: readonly number[]): Tensor =>
  new Tensor("float32", values, shape)

export const longs = (
  values: readonly number[],
  shape: readonly number[] = [values.length],
): Tensor => new Tensor("int64", BigInt64Array.from(values, BigInt), shape)

/** The first rows of a tensor on the device, over the same buffer. */
export const viewOfRows = ({ gpuBuffer, dims }: Tensor, rows: number): Tensor =>
  Tensor.fromGpuBuffer(gpuBuffer, { dataType: "float32", dims: [rows, ...dims.slice(1)] })
