import { Deferred, Effect } from "effect"

interface Group<Input, Output, E> {
  readonly inputs: Input[]
  readonly answer: Deferred.Deferred<readonly Output[], E>
  size: number
}

export interface MicroBatchOptions<Input, Output, E> {
  /** Answers one output for each input, in their order. For several it goes on when nobody waits for it any more. */
  runAll(inputs: readonly Input[]): Effect.Effect<readonly Output[], E>
  sizeOf(input: Input): number
  /** Of inputs that run together. One that has as much runs by itself, at once. */
  readonly maxSize: number
}

/** What comes within one turn of the event loop runs as one: the way into a thread costs more than what is done there for one sentence. */
export const microBatched = <Input, Output, E>({
  runAll,
  sizeOf,
  maxSize,
}: MicroBatchOptions<Input, Output, E>) => {
  let open: Group<Input, Output, E> | undefined
  const begin = (): Group<Input, Output, E> => {
    const group: Group<Input, Output, E> = { inputs: [], answer: Deferred.makeUnsafe(), size: 0 }
    setImmediate(() => {
      if (open === group) open = undefined
      Effect.runFork(
        Effect.onExit(runAll(group.inputs), (exit) =>
          Effect.sync(() => Deferred.doneUnsafe(group.answer, exit)),
        ),
      )
    })
    open = group
    return group
  }
  return (input: Input): Effect.Effect<Output, E> =>
    Effect.suspend(() => {
      const size = sizeOf(input)
      if (size >= maxSize) return Effect.map(runAll([input]), ([output]) => output!)
      const group = open && open.size + size <= maxSize ? open : begin()
      group.size += size
      const place = group.inputs.push(input) - 1
      return Effect.map(Deferred.await(group.answer), (outputs) => outputs[place]!)
    })
}
