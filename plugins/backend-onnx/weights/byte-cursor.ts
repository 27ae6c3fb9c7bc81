/**
 * The buffer ends before the value does. `needed`: bytes from the file's start that would suffice.
 */
export class BytesMissing extends Error {
  readonly needed: number
  constructor(needed: number) {
    super(`needs ${needed} bytes`)
    this.needed = needed
  }
}

/** Reads little-endian values one after the other and never past the end. */
export class ByteCursor {
  readonly bytes: Buffer
  at = 0
  constructor(bytes: Buffer) {
    this.bytes = bytes
  }

  private take(length: number): number {
    const start = this.at
    if (length > this.bytes.length - start) throw new BytesMissing(start + length)
    this.at = start + length
    return start
  }

  u8 = (): number => this.bytes.readUInt8(this.take(1))
  i8 = (): number => this.bytes.readInt8(this.take(1))
  u16 = (): number => this.bytes.readUInt16LE(this.take(2))
  i16 = (): number => this.bytes.readInt16LE(this.take(2))
  u32 = (): number => this.bytes.readUInt32LE(this.take(4))
  i32 = (): number => this.bytes.readInt32LE(this.take(4))
  f32 = (): number => this.bytes.readFloatLE(this.take(4))
  /** As a double, exact up to 2^53; `length` refuses larger values. */
  u64 = (): number => Number(this.bytes.readBigUInt64LE(this.take(8)))
  i64 = (): number => Number(this.bytes.readBigInt64LE(this.take(8)))
  f64 = (): number => this.bytes.readDoubleLE(this.take(8))
  text(length: number): string {
    const start = this.take(length)
    return this.bytes.toString("utf8", start, start + length)
  }
}
