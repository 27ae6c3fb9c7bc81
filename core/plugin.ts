import type { Effect, Schema, Scope } from "effect"
import type { DependencyContainer } from "tsyringe"
import type { PluginError } from "./errors.ts"
import type { Json } from "./json.ts"
import type { Command } from "./ports/command.ts"
import type { Migrations } from "./ports/database.ts"
import type { Token } from "./tokens.ts"

/**
 * A plugin adds to a deployment. Its life: settings decoded -> `create` -> `register` -> its
 * migrations -> `start` -> its Scope closes.
 * Boot starts providers before those that ask for them; `rakit check` stops after `register`.
 */
export interface Plugin<Settings = Json> {
  readonly name: string
  readonly api: 1
  /** One sentence, for `rakit check`. */
  readonly about: string
  readonly settings: Schema.Codec<Settings, Json>
  /** Without these the deployment is refused. */
  readonly needs: readonly Token<unknown>[]
  /** Used where some plugin provides them; that plugin then starts first. */
  readonly optional?: readonly Token<unknown>[]
  readonly provides: readonly Token<unknown>[]
  /**
   * Schemas of the `options` of model entries, by backend and task: checked at boot with line and
   * column, and known to editors and the config reference.
   */
  readonly modelOptions?: Readonly<Record<string, Readonly<Record<string, Schema.Top>>>>
  /** Own tables with an own prefix, no foreign keys to those of others. Needs `Database`. */
  readonly migrations?: Migrations
  /** Commands of `rakit`, for deployments whose config file names this plugin. */
  readonly commands?: readonly Command[]
  /**
   * Called once for each deployment; several may run in one process, so all state is kept in this
   * closure. No I/O.
   */
  create(settings: Settings): PluginInstance
}

/** A plugin as part of one deployment. */
export interface PluginInstance {
  /**
   * Registers endpoint, backend and job values. No I/O; nothing of other plugins is resolved yet,
   * only inside functions that run later.
   */
  register?(container: DependencyContainer): void
  /** False: `start` would begin with empty data. For commands that only read. */
  hasData?(container: DependencyContainer): boolean
  /**
   * Opens resources into the Scope and provides what it opened. All that the plugin `needs` has
   * started.
   */
  start?(container: DependencyContainer): Effect.Effect<void, PluginError, Scope.Scope>
}

/**
 * Checks the shape and hides the type of the settings, so that plugins of all kinds fit one list.
 */
export const definePlugin = <Settings>(plugin: Plugin<Settings>): Plugin =>
  plugin as unknown as Plugin
