// Command lines: a list of commands becomes help, parsing and exit codes. stdout carries only the result. Commands that
// every service has: service-commands.ts. Tests: test/cli.test.ts of each service.
import { type ParseArgsOptionsConfig, parseArgs } from 'node:util'
import { nearest } from '../config/nearest-name.ts'
import { ConfigError } from '../config/variables.ts'
import { isDatabaseRefusal, isDatabaseUnavailable, isMissingTable } from '../database/errors.ts'
import { ApiError } from '../errors.ts'
import { OUTPUT_CLOSED } from '../telemetry/logger.ts'
import { explainStartFailure, failureCode } from './explain-start-failure.ts'

/** Option of a command. `value` names its value in the help (`DURATION`); an option without one is a switch. */
export interface Option {
  value?: string
  meaning: string
}
type Options = Record<string, Option>
type Values<O> = { [Name in keyof O]?: (O[Name] extends { value: string } ? string : boolean) | undefined }

interface Input<O> {
  options: Values<O>
  operands: string[]
  json: boolean
}

interface Definition<O extends Options> {
  name: string
  summary: string
  /** Names of operands: required ones (`FILE`), then optional ones (`[ID]`). */
  operands?: readonly string[]
  options?: O
  details?: string
  run(input: Input<O>): unknown
}

export type Command = Definition<Options>

/** Ties the type of `run`'s options to those declared. */
export const command = <const O extends Options>(definition: Definition<O>): Command => definition as unknown as Command

/** Wrong usage: exit code 64 (EX_USAGE) and a pointer to the help. */
export class UsageError extends Error {
  override readonly name = 'UsageError'
}

/** A failure that the operator can fix: exit code 1 and only the message. */
export class CommandFailure extends Error {
  override readonly name = 'CommandFailure'
}

export function printResult(json: boolean, value: unknown, text: string): void {
  process.stdout.write(`${json ? JSON.stringify(value) : text}\n`)
}

const COMMON = {
  json: { meaning: 'print JSON' },
  help: { meaning: 'show this' },
}

export async function runCommandLine(program: string, commands: Command[]): Promise<void> {
  for (const output of [process.stdout, process.stderr]) output.on('error', exitWhenPipeCloses)
  await runCommand(program, commands, process.argv.slice(2))
}

/** Runs the command of `args`. Exit codes: 0, 1 failed, 64 wrong usage, 78 wrong settings, 141 output closed. */
export async function runCommand(program: string, commands: Command[], args: readonly string[]): Promise<void> {
  const found = findCommand(commands, args)
  try {
    if (!found) return answerUnknown(program, commands, args)
    const { values, positionals } = readArguments(found, args.slice(wordsOf(found).length))
    if (values.help) return void process.stdout.write(commandHelp(program, found))
    const { operands = [] } = found
    const needed = operands.filter((name) => !name.startsWith('[')).length
    if (positionals.length < needed || positionals.length > operands.length) {
      throw new UsageError(`needs ${operands.length === 0 ? 'no operands' : operands.join(' ')}`)
    }
    const { json = false, help: _help, ...options } = values
    await found.run({ options: options as Values<Options>, operands: positionals, json: Boolean(json) })
  } catch (error) {
    if (!(error instanceof UsageError)) return fail(error)
    process.stderr.write(`${program} ${found?.name}: ${error.message}\n${program} ${found?.name} --help shows how\n`)
    process.exitCode = 64
  }
}

const wordsOf = ({ name }: Command) => name.split(' ')

/** Finds the command with the most words that begin `args`. */
function findCommand(commands: Command[], args: readonly string[]): Command | undefined {
  return commands
    .filter((each) => wordsOf(each).every((word, index) => word === args[index]))
    .toSorted((a, b) => wordsOf(b).length - wordsOf(a).length)[0]
}

function readArguments(found: Command, args: readonly string[]) {
  const options: ParseArgsOptionsConfig = { help: { type: 'boolean', short: 'h' } }
  for (const [name, { value }] of Object.entries({ ...COMMON, ...found.options } as Options)) {
    options[name] = { ...options[name], type: value === undefined ? 'boolean' : 'string' }
  }
  try {
    return parseArgs({ args: [...args], options, allowPositionals: true })
  } catch (error) {
    if (!String((error as { code?: string }).code).startsWith('ERR_PARSE_ARGS')) throw error
    // Later sentences concern operands that begin with a dash; there are none.
    throw new UsageError((error as Error).message.split('. ', 1)[0])
  }
}

/** Lists all commands, or those that begin with these words. An error unless help was requested. */
function answerUnknown(program: string, commands: Command[], args: readonly string[]): void {
  const isHelp = args.some((arg) => arg === '--help' || arg === '-h')
  const typed = args.filter((arg) => !arg.startsWith('-'))
  const words = typed.join(' ')
  const group = commands.filter(({ name }) => name.startsWith(`${words} `))
  const listed = group.length > 0 ? group : commands
  if (args.length === 0 || (isHelp && (words === '' || group.length > 0))) {
    return void process.stdout.write(listHelp(program, words === '' ? commands : listed))
  }
  process.exitCode = 64
  if (group.length > 0) return void process.stderr.write(listHelp(program, group))
  const closest = closestCommand(commands, typed)
  const hint = closest ? `Did you mean "${closest}"? ` : ''
  process.stderr.write(`unknown command: ${args.join(' ')}\n${hint}${program} --help lists all commands.\n`)
}

/** Compares as many leading words as a name has, because operands follow it; longer names first. */
function closestCommand(commands: Command[], words: readonly string[]): string | undefined {
  const byLength = Object.groupBy(commands, (each) => wordsOf(each).length)
  // Keys that are integers come in ascending order.
  const found = Object.entries(byLength).map(([length, alike = []]) =>
    nearest(
      words.slice(0, Number(length)).join(' '),
      alike.map(({ name }) => name),
    ),
  )
  return found.findLast((name) => name !== undefined)
}

const usage = ({ name, operands = [] }: Command) => [name, ...operands].join(' ')

function listHelp(program: string, commands: Command[]): string {
  const rows = commands.map((each): [string, string] => [usage(each), each.summary])
  return `${program} <command>\n\n${table(rows)}\n${program} <command> --help shows the options of one.\n`
}

function commandHelp(program: string, found: Command): string {
  const rows = Object.entries({ ...found.options, ...COMMON } as Options).map(
    ([name, { value, meaning }]): [string, string] => [`--${name}${value === undefined ? '' : ` ${value}`}`, meaning],
  )
  const details = found.details ? `\n${found.details}\n` : ''
  return `${program} ${usage(found)}\n\n  ${found.summary}\n\n${table(rows)}${details}`
}

function table(rows: [string, string][]): string {
  const width = Math.max(...rows.map(([left]) => left.length))
  return rows.map(([left, right]) => `  ${left.padEnd(width)}  ${right}\n`).join('')
}

/** Prints a message for failures that the operator can fix, and refusals of the API; a stack for bugs. */
function fail(error: unknown): never {
  process.stderr.write(`${explain(error) ?? (error instanceof Error ? error.stack : String(error))}\n`)
  process.exit(failureCode(error))
}

function explain(error: unknown): string | undefined {
  if (error instanceof CommandFailure || error instanceof ApiError) return error.message
  // Its cause may be a program that is missing, which is no unreachable database.
  if (error instanceof ConfigError) return error.message
  if (isMissingTable(error)) return `A table is missing: run \`migrate\` (${(error as Error).message})`
  if (isDatabaseUnavailable(error) && !isDatabaseRefusal(error))
    return `the database cannot be reached: ${(error as Error).message}`
  return explainStartFailure(error, {})
}

/** `… | head` closes the pipe early, and `… 2>&1 | head` that of the log. A result that was not read is no success. */
function exitWhenPipeCloses(error: NodeJS.ErrnoException): void {
  if (error.code === 'EPIPE') process.exit(OUTPUT_CLOSED)
  process.stderr.write(`the result could not be written: ${error.message}\n`)
  process.exit(1)
}
