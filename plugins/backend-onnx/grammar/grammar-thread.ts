import { parentPort, receiveMessageOnPort, workerData } from "node:worker_threads"
import { Closings } from "./closings.ts"
import {
  type GrammarThreadData,
  noClosing,
  SharedState,
  type ToGrammarThread,
} from "./grammar-protocol.ts"
import { Matchers } from "./matchers.ts"

const { vocabulary, asked } = workerData as GrammarThreadData
const states = new Map<number, SharedState>()
// one thread has masks, another one searches completions
let matchersMade: Matchers | undefined
let closingsMade: Closings | undefined
const matchers = (): Matchers => {
  matchersMade ??= new Matchers(vocabulary)
  return matchersMade
}
const closings = (): Closings => {
  closingsMade ??= new Closings(vocabulary)
  return closingsMade
}

type Seek = Extract<ToGrammarThread, { readonly type: "seek" }>

const textOf = (cause: unknown): string => (cause instanceof Error ? cause.message : String(cause))

/** Advances an answer and publishes the mask after it. */
const advance = (id: number, step: () => void): void => {
  const state = states.get(id)
  if (!state) return
  try {
    step()
    const all = matchers()
    state.publish(all.mask(id), all.isComplete(id), all.guardedTokens(id))
  } catch (cause) {
    state.fail(textOf(cause))
  }
}

const seek = ({ id, grammar, kept, more, most, found: buffer }: Seek): void => {
  const found = new Int32Array(buffer)
  let tokens: readonly number[] | undefined
  try {
    if (grammar) closings().open(id, grammar)
    tokens = closings().find(id, kept, more, most)
  } catch {
    // the failure is reported by the next mask
  }
  if (tokens) found.set(tokens, 1)
  Atomics.store(found, 0, tokens ? tokens.length + 1 : noClosing)
  Atomics.notify(found, 0)
}

const handle = (message: ToGrammarThread): void => {
  const { id } = message
  if (message.type === "seek") seek(message)
  else if (message.type === "open") {
    states.set(id, SharedState.over(message.state))
    advance(id, () => matchers().add(id, message.grammar))
  } else if (message.type === "accept") advance(id, () => matchers().accept(id, message.token))
  else if (message.type === "rollback") advance(id, () => matchers().rollback(id, message.count))
  else {
    if (states.delete(id)) matchers().release(id)
    closingsMade?.release(id)
  }
}

/** What waits until an answer's grammar is compiled: one at a time, between others' masks. */
const opening = new Map<number, ToGrammarThread[]>()

const receive = (message: ToGrammarThread): void => {
  const { id } = message
  if (message.type === "open") opening.set(id, [message])
  else if (message.type === "release" && opening.delete(id)) return
  else if (opening.has(id)) opening.get(id)!.push(message)
  else handle(message)
}

const openNext = (): void => {
  const [id, messages] = opening.entries().next().value!
  opening.delete(id)
  for (const message of messages) handle(message)
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
      receive(received.message as ToGrammarThread)
    if (opening.size > 0) openNext()
    else Atomics.wait(signal, 0, seen)
  }
}

serve(new Int32Array(asked))
