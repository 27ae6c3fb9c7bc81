import { parentPort, receiveMessageOnPort, workerData } from "node:worker_threads"
import {
  type GrammarThreadData,
  noClosing,
  SharedState,
  type ToGrammarThread,
} from "./grammar-protocol.ts"
import { Matchers, type PiecewiseClosing } from "./matchers.ts"

const { vocabulary, asked } = workerData as GrammarThreadData
const states = new Map<number, SharedState>()
const matchers = new Matchers(vocabulary)

type Closing = Extract<ToGrammarThread, { readonly type: "closing" }>

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

const finish = (found: Int32Array, tokens: readonly number[] | undefined): void => {
  if (tokens) found.set(tokens, 1)
  Atomics.store(found, 0, tokens ? tokens.length + 1 : noClosing)
  Atomics.notify(found, 0)
}

/** Its failure is reported by the next mask. */
const orNone = <A>(search: () => A): A | undefined => {
  try {
    return search()
  } catch {
    return undefined
  }
}

/** Searches that nobody waits for, by answer, the one that comes next first. */
const searches = new Map<
  number,
  { readonly search: PiecewiseClosing; readonly found: Int32Array }
>()

const close = ({ id, most, masks, found: memory }: Closing): void => {
  const found = new Int32Array(memory)
  const search = masks === undefined ? orNone(() => matchers.closingInPieces(id, most)) : undefined
  if (search) searches.set(id, { search, found })
  else
    finish(
      found,
      orNone(() => matchers.closingOf(id, most, masks)),
    )
}

/** Goes on with the first search, which then becomes the last. */
const searchOn = (): void => {
  const [id, searching] = searches.entries().next().value!
  searches.delete(id)
  const done = orNone(() => searching.search.piece() ?? "more") ?? { found: undefined }
  if (done === "more") searches.set(id, searching)
  else finish(searching.found, done.found)
}

const handle = (message: ToGrammarThread): void => {
  const { id } = message
  if (message.type === "open") {
    states.set(id, SharedState.over(message.state))
    advance(id, () => matchers.add(id, message.grammar))
  } else if (message.type === "accept") advance(id, () => matchers.accept(id, message.token))
  else if (message.type === "rollback") advance(id, () => matchers.rollback(id, message.count))
  else if (message.type === "closing") close(message)
  else {
    states.delete(id)
    searches.get(id)?.search.end()
    searches.delete(id)
    matchers.release(id)
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
 * Serves messages, and searches between them, without ever returning to the event loop: it sleeps on shared memory and reads
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
    else if (searches.size > 0) searchOn()
    else Atomics.wait(signal, 0, seen)
  }
}

serve(new Int32Array(asked))
