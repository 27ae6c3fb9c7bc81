import type { Attribute, Value } from "./graph-builder.ts"

/**
 * What a native product does to its rows itself, in place of a node before it
 * (kernels/native/block-matmul.cpp).
 */
export interface RowStep {
  readonly x: Value
  /** The product's inputs for it, behind those of the matrix. */
  readonly inputs: readonly Value[]
  readonly attributes: Readonly<Record<string, Attribute>>
  /** The name of the product's second output, which the step makes; undefined: none. */
  readonly sum?: Value
}

/** Rows that are multiplied by one product or by several. */
export interface ProductInput {
  /** The rows, made by nodes of their own. */
  value(): Value
  /** The same, for a single native product. */
  readonly step?: RowStep
}

/** `make` adds its nodes to the graph at the first call of `value`. */
export const productInput = (make: () => Value, step?: RowStep): ProductInput => {
  let made: Value | undefined
  const value = () => (made ??= make())
  return { value, ...(step && { step }) }
}

export const rowsAsValue = (x: Value | ProductInput): Value =>
  typeof x === "string" ? x : x.value()
