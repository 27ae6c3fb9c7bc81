const width = 36
const growth = 2

/** 0 to 35 for a to z and 0 to 9; anything else is no letter of a word. */
const placeOf = (code: number): number =>
  code >= 97 && code <= 122 ? code - 97 : code >= 48 && code <= 57 ? code - 22 : -1

/** A trie over words of a to z and 0 to 9, in one array. Its root is node 0; -1 is no node. */
export class Trie {
  private next = new Int32Array(1_024 * width).fill(-1)
  private size = 1

  /** The node of a word, made where it is missing. */
  add(word: string): number {
    let node = 0
    for (let at = 0; at < word.length; at++) {
      const place = node * width + placeOf(word.charCodeAt(at))
      let child = this.next[place]!
      if (child === -1) {
        child = this.newNode() // may make a larger array
        this.next[place] = child
      }
      node = child
    }
    return node
  }

  private newNode(): number {
    if ((this.size + 1) * width > this.next.length) {
      const larger = new Int32Array(this.next.length * growth).fill(-1)
      larger.set(this.next)
      this.next = larger
    }
    return this.size++
  }

  /** The node behind this letter, or -1. */
  step(node: number, code: number): number {
    const place = placeOf(code)
    return place < 0 ? -1 : this.next[node * width + place]!
  }

  /** The nodes behind any letter. */
  children(node: number): readonly number[] {
    const all = this.next.subarray(node * width, (node + 1) * width)
    return [...all].filter((child) => child !== -1)
  }
}
