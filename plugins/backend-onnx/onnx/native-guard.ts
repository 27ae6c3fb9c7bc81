/**
 * ONNX Runtime aborts the whole process when its thread is terminated in the middle of a call
 * (onnxruntime-node 1.30.0: an uncaught Napi::Error).
 * `process.exit` terminates threads. So each engine shares two words with the main thread, which at
 * exit waits for a running call and lets no other begin.
 */
const closing = 0
const inNative = 1

export const newGuard = (): Int32Array => new Int32Array(new SharedArrayBuffer(8))

/**
 * Runs a call into ONNX Runtime in the engine's thread; all of them go through it. Calls must not
 * overlap.
 */
export const guarded = async <A>(
  guard: Int32Array | undefined,
  call: () => Promise<A>,
): Promise<A> => {
  if (!guard) return call()
  Atomics.store(guard, inNative, 1)
  try {
    if (Atomics.load(guard, closing)) park(guard)
    return await call()
  } finally {
    leave(guard)
  }
}

const leave = (guard: Int32Array): void => {
  Atomics.store(guard, inNative, 0)
  Atomics.notify(guard, inNative)
}

/** Blocks until the thread is terminated, which is safe here. */
const park = (guard: Int32Array): void => {
  leave(guard)
  Atomics.wait(guard, closing, 1)
}

/**
 * In the main thread, before the process exits: blocks until a running call ends, at most
 * `timeoutMs`.
 */
export const waitForNative = (guard: Int32Array, timeoutMs: number): void => {
  Atomics.store(guard, closing, 1)
  if (Atomics.load(guard, inNative)) Atomics.wait(guard, inNative, 1, timeoutMs)
}
