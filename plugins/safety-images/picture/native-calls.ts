/**
 * ONNX Runtime aborts the whole process when a thread is terminated in the middle of a call
 * (onnxruntime-node 1.30.0: an uncaught Napi::Error), and the threads of the pool are, at exit. So
 * the calls of all threads are counted in two shared words: at the end the main thread lets no call
 * begin, and waits for those that run.
 */
const closing = 0
const running = 1

export const newCallCount = (): Int32Array => new Int32Array(new SharedArrayBuffer(8))

/** Runs a call into ONNX Runtime; fails after the end has begun. */
export const counted = async <A>(count: Int32Array, call: () => Promise<A>): Promise<A> => {
  Atomics.add(count, running, 1)
  try {
    if (Atomics.load(count, closing)) throw new Error("the server ends")
    return await call()
  } finally {
    Atomics.sub(count, running, 1)
    Atomics.notify(count, running)
  }
}

/** In the main thread: blocks until no call runs, at most `timeoutMs` for each. */
export const endCalls = (count: Int32Array, timeoutMs: number): void => {
  Atomics.store(count, closing, 1)
  for (;;) {
    const left = Atomics.load(count, running)
    if (left === 0 || Atomics.wait(count, running, left, timeoutMs) === "timed-out") return
  }
}
