import type { Command } from "commander"
import { refuse } from "./refuse.ts"

interface Place {
  /** Names of the commands that lead here: `models pull`. */
  readonly path: string
  /** Commands and options that may follow, with what they are. */
  readonly words: readonly (readonly [word: string, about: string])[]
}

/** Every command of the program, the program itself first. */
const placesOf = (command: Command, path: readonly string[] = []): readonly Place[] => [
  {
    path: path.join(" "),
    words: [
      ...command.commands.map((one) => [one.name(), one.description()] as const),
      ...command.options
        .filter(({ hidden }) => !hidden)
        .map(({ long, short, description }) => [long ?? short ?? "", description] as const),
      ["--help", "shows the help"] as const,
    ],
  },
  ...command.commands.flatMap((one) => placesOf(one, [...path, one.name()])),
]

const namesIn = (places: readonly Place[]): string =>
  [...new Set(places.flatMap(({ path }) => path.split(" ")))].filter(Boolean).join(" ")

/** Config files are completed everywhere, as each command takes one. */
const bash = (places: readonly Place[]): string => `_rakit() {
  local cur="\${COMP_WORDS[COMP_CWORD]}" path="" words="" word
  for word in "\${COMP_WORDS[@]:1:COMP_CWORD-1}"; do
    case " ${namesIn(places)} " in *" $word "*) path="\${path:+$path }$word" ;; esac
  done
  case "$path" in
${places.map(({ path, words }) => `    "${path}") words="${words.map(([word]) => word).join(" ")}" ;;`).join("\n")}
  esac
  COMPREPLY=($(compgen -W "$words" -- "$cur") $(compgen -f -X '!*.@(yaml|yml)' -- "$cur") $(compgen -d -- "$cur"))
}
shopt -s extglob 2>/dev/null
complete -o filenames -F _rakit rakit
`

const zsh = (places: readonly Place[]): string =>
  `autoload -U +X compinit && compinit\nautoload -U +X bashcompinit && bashcompinit\n${bash(places)}`

const quoted = (text: string): string => `'${text.replace(/[\\']/g, "\\$&")}'`

const fish = (places: readonly Place[]): string =>
  [
    "function __rakit_at",
    "  set -l path",
    "  for word in (commandline -opc)[2..]",
    `    contains -- $word ${namesIn(places)}; and set -a path $word`,
    "  end",
    '  test "$path" = "$argv[1]"',
    "end",
    ...places.flatMap(({ path, words }) =>
      words.map(([word, about]) => {
        const what = word.startsWith("--") ? `-l ${word.slice(2)}` : `-a ${word}`
        return `complete -c rakit -n ${quoted(`__rakit_at "${path}"`)} ${what} -d ${quoted(about)}`
      }),
    ),
    "",
  ].join("\n")

const shells: Readonly<Record<string, (places: readonly Place[]) => string>> = { bash, zsh, fish }

/** Prints the script for a shell, made of the commands as they are. */
export const completion = (program: Command, shell: string): void => {
  const write = shells[shell]
  if (write) process.stdout.write(write(placesOf(program)))
  else refuse(new Error(`There is no completion for '${shell}'. Fix: one of bash, zsh, fish.`))
}
