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
  if (command.config !== undefined)
    added
      .argument("[config]", command.config, defaultConfig)
      .option("-c, --config <file>", "the same, as an option")
  for (const option of command.options) addOption(added, option)
  added.action(async () => {
    const { config: option, ...options } = added.opts()
    const argument = added.processedArgs[command.arguments.length] as string | undefined
    const config: string = option ?? argument ?? defaultConfig
    const { runPluginCommand } = await import("./run-plugin-command.ts")
    await runPluginCommand(command, {
      arguments: added.processedArgs.slice(0, command.arguments.length) as readonly string[],
      options,
      config: { file: config, isTyped: config !== defaultConfig },
    })
  })
}

/** The commands that the built-in plugins bring. */
export const addPluginCommands = (program: Commander, defaultConfig: string): void => {
  for (const command of builtinCommands) addCommand(program, command, defaultConfig)
}

const subcommand = (command: Commander, name: string | undefined): Commander | undefined =>
  command.commands.find((one) => one.name() === name)

const isKnown = (program: Commander, [group, name]: readonly string[]): boolean => {
  if (group === undefined || group.startsWith("-") || group === "help") return true
  const found = subcommand(program, group)
  if (!found || found.commands.length === 0) return found !== undefined
  return name === undefined || name.startsWith("-") || subcommand(found, name) !== undefined
}

/**
 * For a command that is not known yet: adds those of the plugins that the config file names. The
 * config file is the last argument that looks like one.
 */
export const addConfiguredCommands = async (
  program: Commander,
  args: readonly string[],
  defaultConfig: string,
): Promise<void> => {
  if (isKnown(program, args)) return
  const file = args.findLast((arg) => /\.ya?ml$/.test(arg))
  if (file === undefined) return
  const { loadConfig } = await import("../config/load.ts")
  const { loadPlugins } = await import("../boot/load-plugins.ts")
  const config = loadConfig(file, process.env)
  const { plugins, problems } = await loadPlugins(
    Object.keys(config.deployment.plugins),
    config.file,
  )
  for (const command of plugins.flatMap(({ plugin }) => plugin.commands ?? [])) {
    const group = subcommand(program, command.group.name)
    if (!group || !subcommand(group, command.name)) addCommand(program, command, defaultConfig)
  }
  // a plugin that could not be loaded may be the one that brings the command
  if (problems.length > 0 && !isKnown(program, args)) throw config.refuse(problems)
}
