import type { Json } from "../../../../core/json.ts"

/** What is demanded of a value that is being written. */
export interface Watch {
  /** The watch of an item or a property; undefined: nothing is checked there. */
  child(key: string | number): Watch | undefined
  /** Something is checked here, beside the check of the whole document in the end. */
  readonly isGuarded: boolean
  /** Whether `allows` may refuse. */
  readonly checksParts: boolean
  /** Begins another mask, as the work of the judgements of each is bounded. */
  renew(): void
  /** Whether the value may be finished. */
  accepts(value: Json): boolean
  /**
   * Whether the open container can still become a value that is accepted, as far as that is cheap
   * to say. `more`: another item or property follows.
   */
  allows(frame: Frame, more: boolean): boolean
  /** Whether the container may have another property, of this name. */
  allowsName(frame: Frame, name: string): boolean
  /**
   * The few values that may be written next into the container, as JSON text with one character
   * per byte, in order: other beginnings lead nowhere. Undefined: they are not known, or not few.
   */
  choices(frame: Frame): readonly string[] | undefined
}

/** An item or property that was written, and those before it. */
export interface Entry {
  readonly before: Entry | undefined
  readonly name: string
  readonly value: Json
}

/** An open array or object. */
export interface Frame {
  readonly isArray: boolean
  readonly parent: Frame | undefined
  readonly watch: Watch | undefined
  readonly last: Entry | undefined
  readonly size: number
  /** The property whose value is written next. */
  readonly name: string
  /** What it becomes when it is closed here, once that was asked; undefined: not accepted. */
  closed?: { readonly value: Json } | undefined
}

/**
 * Where a document stands. Immutable, so that going back is taking an earlier one. Moves:
 * value -> text -> after, value -> number | literal -> after, and open containers begin with name
 * or item. After is between a value and what follows it; at the root it is done.
 */
export interface DocumentState {
  readonly mode:
    | "value"
    /** The first item of an array, or its end. */
    | "item"
    /** A property, or the end of the object. */
    | "name"
    | "nameText"
    | "colon"
    | "text"
    | "number"
    | "literal"
    | "after"
    | "done"
  readonly frame: Frame | undefined
  /** What was written of the scalar or name, as one character per byte. */
  readonly raw: string
  /** A backslash was written last. */
  readonly isEscaped: boolean
  /** The texts that the value may become. */
  readonly choices: readonly string[] | undefined
}

const between = /[\x20\n\r\t]/
const inNumber = /[-+.eE0-9]/

const plain = /^[\x20-\x5b\x5d-\x7e]*$/

const textOf = (raw: string): string =>
  plain.test(raw) ? raw : (JSON.parse(`"${Buffer.from(raw, "latin1").toString()}"`) as string)

/** Returns the value of a container that is closed now. Of names written twice the last counts. */
const closedValue = (frame: Frame): Json => {
  const entries: Entry[] = []
  for (let entry = frame.last; entry; entry = entry.before) entries.push(entry)
  entries.reverse()
  return frame.isArray
    ? entries.map(({ value }) => value)
    : Object.fromEntries(entries.map(({ name, value }) => [name, value]))
}

/** Whether one of the texts, which are in order, begins like this. */
const hasBeginning = (texts: readonly string[], beginning: string): boolean => {
  let [from, to] = [0, texts.length]
  while (from < to) {
    const middle = (from + to) >> 1
    if (texts[middle]! < beginning) from = middle + 1
    else to = middle
  }
  return texts[from]?.startsWith(beginning) ?? false
}

const keyIn = (frame: Frame): string | number => (frame.isArray ? frame.size : frame.name)

/**
 * Follows the text of one JSON document and asks the watch wherever a value or name is finished.
 * Relies on the text being JSON.
 */
export class JsonTracker {
  readonly start: DocumentState = {
    mode: "value",
    frame: undefined,
    raw: "",
    isEscaped: false,
    choices: undefined,
  }
  private readonly root: Watch | undefined

  /** Undefined: nothing is checked, only the end of the document is found. */
  constructor(root: Watch | undefined) {
    this.root = root
  }

  /**
   * Returns the state after more of the text, one character per byte; undefined: it finishes
   * something that is not accepted.
   */
  advance(from: DocumentState, text: string): DocumentState | undefined {
    let state: DocumentState | undefined = from
    for (let at = 0; at < text.length && state; ) {
      if ((state.mode === "text" || state.mode === "nameText") && !state.isEscaped) {
        const stop = this.endOfRun(text, at)
        if (stop > at) {
          state = this.fitting({ ...state, raw: state.raw + text.slice(at, stop) })
          at = stop
          continue
        }
      }
      state = this.step(state, text[at]!)
      at++
    }
    return state
  }

  renew(): void {
    this.root?.renew()
  }

  /** Whether the text may end here. */
  mayEnd(state: DocumentState): boolean {
    if (state.mode === "number" && !state.frame) return this.finished(state) !== undefined
    return state.mode === "done"
  }

  /** The watch of the value that is being written. */
  watchOf({ frame }: DocumentState): Watch | undefined {
    return frame ? frame.watch?.child(keyIn(frame)) : this.root
  }

  /** The few texts that the value being written, or the next one, may be. */
  choicesAt({ mode, frame, choices }: DocumentState): readonly string[] | undefined {
    return mode === "value" || mode === "item" ? frame?.watch?.choices(frame) : choices
  }

  /** The keys that lead to the outermost guarded value that is open; undefined: there is none. */
  guardedAt(state: DocumentState): string | undefined {
    const { mode, frame } = state
    const isScalar = mode === "text" || mode === "number" || mode === "literal"
    let found: Frame | "scalar" | undefined =
      isScalar && this.watchOf(state)?.isGuarded ? "scalar" : undefined
    const frames: Frame[] = []
    for (let open = frame; open; open = open.parent) {
      frames.push(open)
      if (open.watch?.isGuarded) found = open
    }
    if (!found) return undefined
    // a frame's own key is that of the value within it
    const above = found === "scalar" ? frames : frames.slice(frames.indexOf(found) + 1)
    return above.map(keyIn).join("/")
  }

  private endOfRun(text: string, from: number): number {
    for (let at = from; at < text.length; at++) {
      const code = text.charCodeAt(at)
      if (code === 0x22 || code === 0x5c) return at
    }
    return text.length
  }

  private step(state: DocumentState, char: string): DocumentState | undefined {
    const { mode } = state
    if (mode === "text" || mode === "nameText") return this.inText(state, char)
    if (mode === "literal") return this.inLiteral({ ...state, raw: state.raw + char })
    if (mode === "number") {
      if (inNumber.test(char)) return this.fitting({ ...state, raw: state.raw + char })
      const after = this.finished(state)
      return after && this.step(after, char)
    }
    if (between.test(char)) return state
    if (char === "}" || char === "]") return this.closed(state)
    if (mode === "name") return { ...state, mode: "nameText", raw: "" }
    if (mode === "colon") return { ...state, mode: "value" }
    if (mode === "after") return this.comma(state)
    return mode === "done" ? undefined : this.begun(state, char)
  }

  private inText(state: DocumentState, char: string): DocumentState | undefined {
    if (state.isEscaped || char !== '"')
      return this.fitting({
        ...state,
        raw: state.raw + char,
        isEscaped: !state.isEscaped && char === "\\",
      })
    if (state.mode === "text") return this.finished(state)
    const name = textOf(state.raw)
    const frame = state.frame!
    if (frame.watch && !frame.watch.allowsName(frame, name)) return undefined
    const { isArray, parent, watch, last, size } = frame
    return { ...state, mode: "colon", raw: "", frame: { isArray, parent, watch, last, size, name } }
  }

  private inLiteral(state: DocumentState): DocumentState | undefined {
    const isWhole = state.raw === "true" || state.raw === "false" || state.raw === "null"
    return isWhole ? this.finished(state) : this.fitting(state)
  }

  /** A value begins. */
  private begun(state: DocumentState, char: string): DocumentState | undefined {
    const { frame } = state
    if (char === "{" || char === "[") {
      const isArray = char === "["
      const open: Frame = {
        isArray,
        parent: frame,
        watch: this.watchOf(state),
        last: undefined,
        size: 0,
        name: "",
      }
      return { ...state, mode: isArray ? "item" : "name", frame: open }
    }
    const begun: DocumentState = {
      ...state,
      choices: this.choicesAt(state),
      isEscaped: false,
      raw: "",
    }
    if (char === '"') return this.fitting({ ...begun, mode: "text" })
    const mode = char === "-" || (char >= "0" && char <= "9") ? "number" : "literal"
    return this.fitting({ ...begun, mode, raw: char })
  }

  /** Undefined: the scalar begins like none of its choices. */
  private fitting(state: DocumentState): DocumentState | undefined {
    const { choices, mode, raw } = state
    if (!choices || mode === "nameText") return state
    const written = mode === "text" ? `"${raw}` : raw
    return hasBeginning(choices, written) ? state : undefined
  }

  private finished(state: DocumentState): DocumentState | undefined {
    const { mode, raw, frame } = state
    // `-` and `1.` go on
    if (mode === "number" && !/[0-9]$/.test(raw)) return undefined
    const value = mode === "text" ? textOf(raw) : (JSON.parse(raw) as Json)
    const watch = this.watchOf(state)
    return !watch || watch.accepts(value) ? this.added(frame, value) : undefined
  }

  private closed({ frame }: DocumentState): DocumentState | undefined {
    if (!frame) return undefined
    // several tokens close a container
    if (!Object.hasOwn(frame, "closed")) {
      const value = closedValue(frame)
      frame.closed = !frame.watch || frame.watch.accepts(value) ? { value } : undefined
    }
    return frame.closed && this.added(frame.parent, frame.closed.value)
  }

  /** The state after a value that is accepted. */
  private added(frame: Frame | undefined, value: Json): DocumentState | undefined {
    if (!frame) return { ...this.start, mode: "done" }
    const last: Entry = { before: frame.last, name: frame.name, value }
    const { isArray, parent, watch, name } = frame
    const grown: Frame = { isArray, parent, watch, last, size: frame.size + 1, name }
    if (grown.watch && !grown.watch.allows(grown, false)) return undefined
    return { ...this.start, mode: "after", frame: grown }
  }

  private comma(state: DocumentState): DocumentState | undefined {
    const frame = state.frame!
    if (frame.watch && !frame.watch.allows(frame, true)) return undefined
    return { ...state, mode: frame.isArray ? "value" : "name" }
  }
}
