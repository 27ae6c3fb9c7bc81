import { Channel, Stream } from "effect"

/**
 * `Stream.concat` for the streams of calls. effect's own keeps the parts of each stream in a WeakMap
 * for all, whose values V8 frees in a full collection only, and with them the whole call.
 */
export const concat = <A, E, B, F>(first: Stream.Stream<A, E>, then: Stream.Stream<B, F>) =>
  Stream.fromChannel(Channel.concat(Stream.toChannel(first), Stream.toChannel(then)))
