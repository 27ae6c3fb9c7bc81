import type { Effect, Schema, Scope } from "effect"
import type { DependencyContainer } from "tsyringe"
import type { PluginError } from "./errors.ts"
import type { Json } from "./json.ts"
import type { Migrations } from "./ports/database.ts"
import type { Token } from "./tokens.ts"

/**
 * A plugin adds to the deployment. The life of one: settings decoded -> `register` -> (its migrations) -> `start` -> its Scope closes.
 * Boot sorts plugins by what they need; `rakit check` stops after `register`.
 */
export interface Plugin<Settings = Json> {
  readonly name: string
  readonly api: 1
  /** One sentence, for `rakit check`. */
  readonly about: string
  readonly settings: Schema.Codec<Settings, Json>
  readonly needs: readonly Token<unknown>[]
  readonly provides: readonly Token<unknown>[]
  /** Own tables with an own prefix, no foreign keys to those of others. Needs `Database`. */
  readonly migrations?: Migrations
  /** Registers endpoint, backend and job values. No I/O; nothing of other plugins is resolved yet, only inside functions that run later. */
  register?(container: DependencyContainer, settings: Settings): void
  /** Opens resources into the Scope and registers what it opened. All it `needs` has started. */
  start?(
    container: DependencyContainer,
    settings: Settings,
  ): Effect.Effect<void, PluginError, Scope.Scope>
}

/** Checks the shape and hides the type of the settings, so that plugins of all kinds fit one list. */
export const definePlugin = <Settings>(plugin: Plugin<Settings>): Plugin =>
  plugin as unknown as Plugin
