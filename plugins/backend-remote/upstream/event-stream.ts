import { failure } from "./failure.ts"

/**
 * Reads the `data` of server-sent events (WHATWG HTML, 9.2.6) out of pieces of bytes that are cut
 * anywhere, also inside of a character. Comments and other fields are skipped. An event that the
 * end of the body cuts off is returned, too: some servers leave out the last blank line.
 */
export class EventStreamParser {
  private readonly decoder = new TextDecoder()
  private line = ""
  private data: string[] = []
  private bytes = 0
  private isAfterReturn = false
  private readonly maxBytes: number

  /** `maxBytes` of one event; a larger one fails as garbled. */
  constructor(maxBytes: number) {
    this.maxBytes = maxBytes
  }

  push(piece: Uint8Array): readonly string[] {
    return this.read(this.decoder.decode(piece, { stream: true }))
  }

  end(): readonly string[] {
    return this.read(`${this.decoder.decode()}\n\n`)
  }

  private read(text: string): readonly string[] {
    const events: string[] = []
    // the second half of a line's end that two pieces divide
    let from = this.isAfterReturn && text.startsWith("\n") ? 1 : 0
    if (text !== "") this.isAfterReturn = text.endsWith("\r")
    for (const end of text.matchAll(/\r\n|\n|\r/g)) {
      if (end.index < from) continue
      this.grow(text.slice(from, end.index))
      from = end.index + end[0].length
      const event = this.endLine()
      if (event !== undefined) events.push(event)
    }
    this.grow(text.slice(from))
    return events
  }

  private grow(text: string): void {
    this.bytes += text.length
    if (this.bytes > this.maxBytes)
      throw failure("garbled", `an event has more than ${this.maxBytes} characters`)
    this.line += text
  }

  private endLine(): string | undefined {
    const { line } = this
    this.line = ""
    if (line === "") return this.endEvent()
    if (line.startsWith("data:")) this.data.push(line.slice(line[5] === " " ? 6 : 5))
    else this.bytes -= line.length
    return undefined
  }

  private endEvent(): string | undefined {
    const { data } = this
    this.data = []
    this.bytes = 0
    return data.length > 0 ? data.join("\n") : undefined
  }
}
