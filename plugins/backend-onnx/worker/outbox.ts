/**
 * Collects what a thread posts: whatever is said in one turn of its event loop leaves as one
 * message when its callbacks have run. Each message wakes the main thread, which takes a core from
 * the operators of a running step.
 */
export class Outbox<Message> {
  private readonly post: (messages: readonly Message[]) => void
  private messages: Message[] = []
  private isDue = false

  constructor(post: (messages: readonly Message[]) => void) {
    this.post = post
  }

  /** Posts a message in this turn, after those before it. */
  send(message: Message): void {
    this.messages.push(message)
    if (this.isDue) return
    this.isDue = true
    // runs when promises that are settled in this turn have been handled, too
    process.nextTick(this.flush)
  }

  /** Leaves a message that nobody waits for to the next one that is sent. */
  append(message: Message): void {
    this.messages.push(message)
  }

  private readonly flush = (): void => {
    this.isDue = false
    this.post(this.messages.splice(0))
  }
}
