/** What was made lately, bounded in bytes: the least recently used entry is dropped first. */
export class RecentlyUsed<Made> {
  private readonly maxBytes: number
  private readonly bytesOf: (made: Made) => number
  private readonly entries = new Map<string, Made>()
  private used = 0

  constructor(maxBytes: number, bytesOf: (made: Made) => number) {
    this.maxBytes = maxBytes
    this.bytesOf = bytesOf
  }

  get bytes(): number {
    return this.used
  }

  get(key: string): Made | undefined {
    const made = this.entries.get(key)
    if (made === undefined) return undefined
    this.entries.delete(key)
    this.entries.set(key, made)
    return made
  }

  keep(key: string, made: Made): void {
    this.drop(key)
    if (this.bytesOf(made) > this.maxBytes) return
    this.entries.set(key, made)
    this.used += this.bytesOf(made)
    for (const oldest of this.entries.keys()) {
      if (this.used <= this.maxBytes) return
      this.drop(oldest)
    }
  }

  private drop(key: string): void {
    const made = this.entries.get(key)
    if (made === undefined) return
    this.entries.delete(key)
    this.used -= this.bytesOf(made)
  }
}
