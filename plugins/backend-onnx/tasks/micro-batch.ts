import { Deferred, Effect } from "effect"

interface Group<Input, Output, E> {
  readonly inputs: Input[]
  readonly answer: Deferred.Deferred<readonly Output[], E>
  size: number
}

export interface MicroBatchOptions<Input, Output, E> {
  /**
   * Returns one output for each input, in order. A batch of several is not interrupted when its
   * callers are.
   */
  runAll(inputs: readonly Input[]): Effect.Effect<readonly Output[], E>
  sizeOf(input: Input): number
  /** The largest total size of a batch. An input of this size or more runs alone, at once. */
  readonly maxSize: number
}

/**
 * Runs all inputs that arrive within one turn of the event loop as one batch: the hop to a thread
 * of the pool costs more than tokenizing a sentence there.
 */
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
