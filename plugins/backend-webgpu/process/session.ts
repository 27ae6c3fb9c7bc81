import { InferenceSession, Tensor } from "onnxruntime-node"
import { sessionOptions } from "./node-list.ts"

type Tensors = Readonly<Record<string, Tensor>>

/** An open graph, in the shape that engines take. */
export interface DeviceSession {
  readonly inputs: readonly InferenceSession.ValueMetadata[]
  readonly outputs: readonly InferenceSession.ValueMetadata[]
  /** `fetches`: tensors on the device that outputs are written to; null: an output of the CPU. */
  run(feeds: Tensors, fetches?: Readonly<Record<string, Tensor | null>>): Promise<Tensors>
  release(): Promise<void>
}

/** ONNX model (opset 17): y = x + x, with a float each. */
const doubling = Buffer.from(
  "CAkSBXNwaWtlOjwKFQoBeAoBeBIBeRoFQWRkXzAiA0FkZBIBZ1oPCgF4EgoKCAgBEgQKAggBYg8KAXkSCgoICAESBAoCCAFCBAoAEBFCEQoNY29tLm1pY3Jvc29mdBAB",
  "base64",
)

export interface SessionEvents {
  /** A graph is about to be opened. Throws where it can't be. */
  opening(path: string): void
  /** The device computes nothing any more. */
  lost(reason: string): void
}

/**
 * Sessions on the device. All calls of the process go through one queue, as the provider does not
 * take two at a time; and a small session stays open, as the provider forgets the shaders that it
 * has compiled when the last one is released.
 */
export const makeSessions = ({ opening, lost }: SessionEvents) => {
  let last: Promise<unknown> = Promise.resolve()
  const inTurn = <A>(call: () => Promise<A>): Promise<A> => {
    const turn = last.then(call)
    last = turn.catch(() => {})
    return turn
  }
  let sentinel: InferenceSession | undefined
  const ensureSentinel = async () => {
    sentinel ??= await InferenceSession.create(doubling, sessionOptions)
    return sentinel
  }

  /** A run fails by its own fault, or by that of the device, on which the smallest run fails, too. */
  const checkDevice = async (reason: string) => {
    try {
      const { y } = await (await ensureSentinel()).run({ x: new Tensor("float32", [21], [1]) })
      if (y?.data[0] === 42) return
    } catch {
      // lost
    }
    lost(reason)
  }
  const guarded = async <A>(call: () => Promise<A>): Promise<A> => {
    try {
      return await call()
    } catch (cause) {
      await checkDevice(cause instanceof Error ? cause.message : String(cause))
      throw cause
    }
  }

  const openSession = (
    path: string,
    _threads: number,
    { keepsOutputs = false }: { readonly keepsOutputs?: boolean } = {},
  ): Promise<DeviceSession> =>
    inTurn(async () => {
      await ensureSentinel()
      opening(path)
      const options = {
        ...sessionOptions,
        ...(keepsOutputs && { preferredOutputLocation: "gpu-buffer" as const }),
      }
      const session = await guarded(() => InferenceSession.create(path, options))
      return {
        inputs: session.inputMetadata,
        outputs: session.outputMetadata,
        run: (feeds, fetches) =>
          inTurn(
            () =>
              guarded(() =>
                fetches ? session.run(feeds, fetches) : session.run(feeds),
              ) as Promise<Tensors>,
          ),
        release: () => inTurn(() => session.release()),
      }
    })
  return { openSession }
}
