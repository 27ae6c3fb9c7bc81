import { parentPort, receiveMessageOnPort, workerData } from "node:worker_threads"
import {
  type GrammarThreadData,
  noClosing,
  SharedState,
  type ToGrammarThread,
} from "./grammar-protocol.ts"
import { Matchers } from "./matchers.ts"

const { vocabulary, asked } = workerData as GrammarThreadData
const states = new Map<number, SharedState>()
const matchers = new Matchers(vocabulary)

const textOf = (cause: unknown): string => (cause instanceof Error ? cause.message : String(cause))

/** Advances an answer and publishes the mask after it. */
const advance = (id: number, step: () => void): void => {
  const state = states.get(id)
  if (!state) return
  try {
    step()
    state.publish(matchers.mask(id), matchers.isComplete(id), matchers.guardedTokens(id))
  } catch (cause) {
    state.fail(textOf(cause))
  }
}

const close = (id: number, most: number, found: Int32Array): void => {
  let tokens: readonly number[] | undefined
  try {
    tokens = matchers.closingOf(id, most)
  } catch {
    // the failure is reported by the next mask
  }
  if (tokens) found.set(tokens, 1)
  Atomics.store(found, 0, tokens ? tokens.length + 1 : noClosing)
  Atomics.notify(found, 0)
}

const handle = (message: ToGrammarThread): void => {
  const { id } = message
  if (message.type === "open") {
    states.set(id, SharedState.over(message.state))
    advance(id, () => matchers.add(id, message.grammar))
  } else if (message.type === "accept") advance(id, () => matchers.accept(id, message.token))
  else if (message.type === "rollback") advance(id, () => matchers.rollback(id, message.count))
  else if (message.type === "closing") close(id, message.most, new Int32Array(message.found))
  else {
    states.delete(id)
    matchers.release(id)
  }
}

/**
 * Serves messages without ever returning to the event loop: it sleeps on shared memory and reads
 * the port synchronously, so that a wake-up costs microseconds. The thread ends by being
 * terminated.
 */
const serve = (signal: Int32Array): never => {
  for (;;) {
    const seen = Atomics.load(signal, 0)
    for (
      let received = receiveMessageOnPort(parentPort!);
      received;
      received = receiveMessageOnPort(parentPort!)
    )
      handle(received.message as ToGrammarThread)
    Atomics.wait(signal, 0, seen)
  }
}

serve(new Int32Array(asked))
