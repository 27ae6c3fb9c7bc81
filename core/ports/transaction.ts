/**
 * Work of several plugins that commits together. Opaque: only the plugin that provides `Database` looks inside.
 * Ports take it as an optional last argument.
 */
export interface Transaction {
  readonly opaque: unique symbol
}
