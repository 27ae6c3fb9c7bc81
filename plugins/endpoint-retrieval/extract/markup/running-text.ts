/** Puts together the text of a marked-up document, whose white space means nothing. */
export class RunningText {
  #ready = ""
  #isEmpty = true
  #hasSpace = false
  /** Line feeds due before the next word. */
  #breaks = 0

  /** Words, with one space where there was white space. */
  add(text: string): void {
    const words = text.replace(/\s+/g, " ")
    if (words.startsWith(" ")) this.#hasSpace = true
    const inner = words.trim()
    if (inner === "") return
    this.#separate()
    this.#ready += inner
    this.#hasSpace = words.endsWith(" ")
  }

  /** Text whose white space counts. */
  addAsItIs(text: string): void {
    if (text === "") return
    if (this.#breaks > 0) this.#separate()
    this.#ready += text
    this.#isEmpty = false
  }

  /** Begins a line (1) or a paragraph (2). */
  breakLine(lines: 1 | 2): void {
    this.#breaks = Math.max(this.#breaks, lines)
  }

  /** Stands between two cells of a row. */
  divide(): void {
    if (this.#breaks === 0 && !this.#isEmpty) this.#ready += " |"
    this.#hasSpace = true
  }

  /** What was added since the last call. */
  take(): string {
    const text = this.#ready
    this.#ready = ""
    return text
  }

  #separate(): void {
    if (!this.#isEmpty)
      this.#ready += this.#breaks > 0 ? "\n".repeat(this.#breaks) : this.#hasSpace ? " " : ""
    this.#isEmpty = false
    this.#breaks = 0
    this.#hasSpace = false
  }
}
