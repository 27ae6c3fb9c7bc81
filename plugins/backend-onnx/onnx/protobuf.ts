/**
 * Writes protobuf messages (https://protobuf.dev/programming-guides/encoding/): as much as ONNX
 * needs.
 */
export class ProtobufWriter {
  private readonly chunks: Uint8Array[] = []
  private length = 0

  private push(chunk: Uint8Array): void {
    this.chunks.push(chunk)
    this.length += chunk.length
  }

  private varint(value: number | bigint): void {
    const out: number[] = []
    let rest = BigInt.asUintN(64, BigInt(value))
    do {
      const low = Number(rest & 127n)
      rest >>= 7n
      out.push(rest ? low | 128 : low)
    } while (rest)
    this.push(Uint8Array.from(out))
  }

  private tag(field: number, wireType: number): void {
    this.varint((field << 3) | wireType)
  }

  int(field: number, value: number | bigint): this {
    this.tag(field, 0)
    this.varint(value)
    return this
  }

  float(field: number, value: number): this {
    this.tag(field, 5)
    const bytes = new Uint8Array(4)
    new DataView(bytes.buffer).setFloat32(0, value, true)
    this.push(bytes)
    return this
  }

  bytes(field: number, value: Uint8Array): this {
    this.tag(field, 2)
    this.varint(value.length)
    this.push(value)
    return this
  }

  text(field: number, value: string): this {
    return this.bytes(field, Buffer.from(value))
  }

  message(field: number, value: ProtobufWriter): this {
    this.tag(field, 2)
    this.varint(value.length)
    for (const chunk of value.chunks) this.push(chunk)
    return this
  }

  toBytes(): Buffer {
    return Buffer.concat(this.chunks)
  }
}
