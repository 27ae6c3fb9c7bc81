import type { Command, CommandHost, TypedCommand } from "../../core/ports/command.ts"
import { systemClock } from "../../core/services/clock.ts"
import { openDatabase, openOffline } from "./offline.ts"
import { refuse } from "./refuse.ts"
import { onStopSignal } from "./signals.ts"

const host: CommandHost = {
  clock: systemClock,
  onStopSignal,
  openOffline,
  openDatabase,
}

/** Exits with 1 and the reason when the command rejects. */
export const runPluginCommand = async (command: Command, typed: TypedCommand): Promise<void> => {
  const run = await command.load()
  try {
    await run(typed, host)
  } catch (error) {
    refuse(error)
  }
}
