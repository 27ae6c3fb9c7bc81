import type { Effect, Scope } from "effect"
import type { CallPath } from "../call/contract.ts"
import type { Catalogue } from "../services/catalogue.ts"
import type { Clock } from "../services/clock.ts"
import type { ModelId } from "../services/ids.ts"
import type { Log } from "../services/log.ts"
import type { Database } from "./database.ts"
import type { Endpoint } from "./endpoint.ts"

export interface CommandOption {
  /** `-o, --out <file>`; without a value (`--json`) it is a switch, off by default. */
  readonly flags: string
  readonly about: string
  /** Reads the typed value; throws an Error that says what it must be. */
  read?(typed: string): unknown
}

/**
 * A command of `rakit` that a plugin brings (`commands` in its definition): `rakit <group> <name>
 * <arguments> [config]`. It is data; `load` imports what it runs.
 * Those of built-in plugins are in plugins/index.ts, too, so that `--help` lists them without
 * loading the plugins; those of other plugins are found through the config file.
 */
export interface Command {
  readonly group: { readonly name: string; readonly about: string }
  readonly name: string
  readonly about: string
  /** Required ones, in order; a config file may follow them. */
  readonly arguments: readonly { readonly name: string; readonly about: string }[]
  /** What it uses the config file for; absent: it takes none. */
  readonly config?: string
  readonly options: readonly CommandOption[]
  /** Called when the command is. */
  load(): Promise<RunCommand>
}

/**
 * Rejects with an Error for people when it can't do its work; other exit codes go into
 * `process.exitCode`.
 */
export type RunCommand = (typed: TypedCommand, host: CommandHost) => Promise<void>

/** What stood on the command line. */
export interface TypedCommand {
  readonly arguments: readonly string[]
  /**
   * By the long name in camel case; a switch is a boolean, an option that is missing is undefined.
   */
  readonly options: Readonly<Record<string, unknown>>
  readonly config: {
    readonly file: string
    /** False: it is the default. */
    readonly isTyped: boolean
  }
}

/** What the command line lends a command. */
export interface CommandHost {
  readonly clock: Clock
  /** Calls `stop` at the first SIGTERM or SIGINT; the second ends the process. */
  onStopSignal(stop: (signal: "SIGTERM" | "SIGINT") => void): void
  /**
   * Starts what runs models, and nothing else: no server, database, accounts or queue. `write` gets
   * its warnings and errors, as whole lines of the log.
   */
  openOffline(configFile: string, write: (lines: string) => void): Opening<OfflineDeployment>
  /**
   * Starts the database alone, beside a server or without one, and brings the tables of the plugin
   * up to date. Rejects where there are no data yet, and where the config file does not name it.
   */
  openDatabase(plugin: string, config: string, write: (lines: string) => void): Opening<PluginData>
}

type Opening<Opened> = Effect.Effect<Opened, Error, Scope.Scope>

export interface PluginData {
  readonly database: Database
  readonly log: Log
  /** Decoded. */
  readonly settings: unknown
}

/** A deployment without a server. Nobody is billed, and no limit of a key holds. */
export interface OfflineDeployment {
  readonly callPath: CallPath
  readonly catalogue: Catalogue
  readonly endpoints: readonly Endpoint[]
  /** The decoded settings of a plugin; undefined where the config file does not name it. */
  settingsOf(plugin: string): unknown
  /** Opens models whose files are on this machine; downloads nothing. */
  openModels(models: readonly ModelId[]): Effect.Effect<void, Error, Scope.Scope>
}
