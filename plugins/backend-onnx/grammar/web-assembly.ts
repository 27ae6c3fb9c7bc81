/**
 * The part of WebAssembly in use: Node's types declare only some of it without the browser's types.
 */
interface WebAssemblyApi {
  readonly Module: new (bytes: Uint8Array) => WasmModule
  readonly Instance: new (
    module: WasmModule,
    imports: Readonly<Record<string, Readonly<Record<string, (...values: number[]) => number>>>>,
  ) => { readonly exports: unknown }
  readonly RuntimeError: new () => Error
}

export interface WasmModule {
  readonly isWasmModule?: never
}

export interface WasmMemory {
  readonly buffer: ArrayBuffer
}

export const webAssembly = (globalThis as unknown as { readonly WebAssembly: WebAssemblyApi })
  .WebAssembly
