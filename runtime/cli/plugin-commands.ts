import { type Command as Commander, InvalidArgumentError } from "commander"
import type { Command, CommandOption } from "../../core/ports/command.ts"
import { builtinCommands } from "../../plugins/index.ts"

const addOption = (command: Commander, { flags, about, read }: CommandOption) => {
  const isSwitch = !/[<[]/.test(flags)
  if (read === undefined) return command.option(flags, about, isSwitch ? false : undefined)
  return command.option(flags, about, (typed: string) => {
    try {
      return read(typed)
    } catch (error) {
      throw new InvalidArgumentError((error as Error).message)
    }
  })
}

const groupOf = (program: Commander, { name, about }: Command["group"]): Commander =>
  program.commands.find((command) => command.name() === name) ??
  program.command(name).description(about)

const addCommand = (program: Commander, command: Command, defaultConfig: string) => {
  const added = groupOf(program, command.group).command(command.name).description(command.about)
  for (const { name, about } of command.arguments) added.argument(`<${name}>`, about)
  added.argument("[config]", command.config, defaultConfig)
  for (const option of command.options) addOption(added, option)
  added.action(async () => {
    const config = added.processedArgs.at(-1) as string
    const { runPluginCommand } = await import("./run-plugin-command.ts")
    await runPluginCommand(command, {
      arguments: added.processedArgs.slice(0, -1) as readonly string[],
      options: added.opts(),
      config: { file: config, isTyped: config !== defaultConfig },
    })
  })
}

/** The commands that the built-in plugins bring. */
export const addPluginCommands = (program: Commander, defaultConfig: string): void => {
  for (const command of builtinCommands) addCommand(program, command, defaultConfig)
}
