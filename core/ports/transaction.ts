/**
 * A database transaction shared by several plugins. Opaque: only the plugin that provides
 * `Database` can use its content.
 * Ports take it as their optional last argument.
 */
export interface Transaction {
  readonly opaque: unique symbol
}
