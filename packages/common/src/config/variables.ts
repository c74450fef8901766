// Variables of the environment: declared once, read once, and reported by name, never by value.
import { readFileSync } from 'node:fs'
import { parseEnv } from 'node:util'
import { parseDurationSeconds, SECONDS_OR_DURATION } from './duration.ts'
import { nearest } from './nearest-name.ts'

/** A variable of a service. Problems are reported all at once, by name and never by value, which can be a secret. */
export interface Variable<Value> {
  type: string
  meaning: string
  /** Text of the default; a variable without one is `undefined` when unset. */
  default?: string
  required?: boolean
  /** The value is a key or a password, or may contain one: it is never shown. */
  secret?: boolean
  /** Other names read after the main one, without the service's prefix. */
  aliases?: readonly string[]
  /** Throws an Error whose text completes the sentence "NAME …" without quoting the value. */
  parse(text: string): Value
  /** Ties the type parameter of optional variables to `undefined`. */
  readonly optional: boolean
}

// biome-ignore lint/suspicious/noExplicitAny: the element type of a record of variables of different types
export type Variables = Record<string, Variable<any>>
export type Values<V extends Variables> = { [Name in keyof V]: V[Name] extends Variable<infer Value> ? Value : never }

type Options = Pick<Variable<unknown>, 'default' | 'required' | 'aliases' | 'secret'>
type Present = { default: string } | { required: true }
type ValueOf<O, Value> = O extends Present ? Value : Value | undefined

/** A value with its own grammar; `parse` throws an Error that completes the sentence "NAME …". */
export function parsed<Value, const O extends Options>(
  type: string,
  meaning: string,
  options: O,
  parse: (text: string) => Value,
): Variable<ValueOf<O, Value>> {
  const optional = options.default === undefined && !options.required
  return { type, meaning, ...options, optional, parse } as unknown as Variable<ValueOf<O, Value>>
}

export const text = <const O extends Options>(meaning: string, options: O = {} as O) =>
  parsed('string', meaning, options, (value) => value)

/** Name of a header (RFC 9110, section 5.1), in lower case as in Node. */
export const headerName = <const O extends Options>(meaning: string, options: O = {} as O) =>
  parsed('string', meaning, options, (value) => {
    if (!/^[!#$%&'*+.^`|~\w-]+$/.test(value)) throw new Error('must be the name of a header')
    return value.toLowerCase()
  })

export const boolean = <const O extends Options>(meaning: string, options: O = {} as O) =>
  parsed('boolean', meaning, options, (value) => {
    const parsedValue = parseBoolean(value)
    if (parsedValue === undefined) throw new Error('must be true or false')
    return parsedValue
  })

/** Parses the accepted spellings of true and false; undefined for any other text. */
export function parseBoolean(value: string): boolean | undefined {
  if (/^(true|1|yes|on|t)$/i.test(value)) return true
  return /^(false|0|no|off|f)$/i.test(value) ? false : undefined
}

export const integer = <const O extends Options & { min?: number; max?: number }>(meaning: string, options: O) =>
  parsed('integer', meaning, options, (value) => {
    const { min = 0, max = Number.MAX_SAFE_INTEGER } = options
    const number = Number(value)
    if (!Number.isSafeInteger(number) || number < min || number > max) {
      throw new Error(`must be a whole number from ${min} to ${max === Number.MAX_SAFE_INTEGER ? 'any size' : max}`)
    }
    return number
  })

export const port = <const O extends Options>(meaning: string, options: O) =>
  integer(meaning, { ...options, min: 0, max: 65_535 })

/** A hundred years: a later date may not be representable. */
const LONGEST_DURATION = '876000h'

/** Duration in seconds; the text, and `max`, is seconds, `7d` or `1h30m`. */
export const duration = <const O extends Options & { positive?: boolean; max?: string }>(
  meaning: string,
  options: O = {} as O,
) =>
  parsed('duration', meaning, options, (value) => {
    const seconds = parseDurationSeconds(value)
    if (seconds === undefined) throw new Error(`must be ${SECONDS_OR_DURATION}`)
    if (options.positive && seconds === 0) throw new Error('must be more than zero')
    const { max = LONGEST_DURATION } = options
    if (seconds > (parseDurationSeconds(max) as number)) {
      throw new Error(`must be at most ${max}`)
    }
    return seconds
  })

/** Absolute http(s) URL without credentials and fragment, kept as written but without trailing slashes. */
export const httpUrl = <const O extends Options>(meaning: string, options: O = {} as O) =>
  parsed('URL', meaning, options, (value) => parseHttpUrl(value, /#/, 'without user name and fragment'))

/** An `httpUrl` without a query, so that paths can be appended. */
export const baseUrl = <const O extends Options>(meaning: string, options: O = {} as O) =>
  parsed('URL', meaning, options, (value) => parseHttpUrl(value, /[?#]/, 'without user name, query and fragment'))

/** Refuses white space and backslashes, which a URL parser would silently correct: the text is used as written. */
function parseHttpUrl(value: string, unwanted: RegExp, rule: string): string {
  const isHttp = /^https?:\/\/[^/?#@\\\s]+([/?#]|$)/i.test(value)
  if (!isHttp || /[\\\s]/.test(value) || unwanted.test(value) || !URL.canParse(value)) {
    throw new Error(`must be an absolute http or https URL ${rule}`)
  }
  return value.replace(/\/+$/, '')
}

/** Absolute URL such as `myapp://home`. Slashes are required: `localhost:3000` would have scheme `localhost`. */
export const anyUrl = <const O extends Options>(meaning: string, options: O = {} as O) =>
  parsed('URL', meaning, options, (value) => {
    if (!/^[a-z][a-z0-9+.-]*:\/\//i.test(value) || !URL.canParse(value)) {
      throw new Error('must be an absolute URL such as https://app.example.com or myapp://home')
    }
    return value
  })

export const list = <const O extends Options>(meaning: string, options: O = {} as O) =>
  parsed('list', meaning, options, (value) =>
    value
      .split(',')
      .map((item) => item.trim())
      .filter(Boolean),
  )

export const oneOf = <const Choice extends string, const O extends Options>(
  choices: readonly Choice[],
  meaning: string,
  options: O = {} as O,
) =>
  parsed(choices.join(', '), meaning, options, (value) => {
    const choice = choices.find((candidate) => candidate === value.toLowerCase())
    if (choice === undefined) throw new Error(`must be one of ${choices.join(', ')}`)
    return choice
  })

/** Unusable settings. `problems` has a line each, with names and without values. */
export class ConfigError extends Error {
  override readonly name = 'ConfigError'
  readonly problems: readonly string[]
  constructor(problems: readonly string[], cause?: unknown) {
    super(`The configuration has ${problems.length} problem(s):\n${problems.map((line) => `  - ${line}`).join('\n')}`, {
      cause,
    })
    this.problems = problems
  }
}

export type Environment = Record<string, string | undefined>

/** Value of a set variable, the name that it was given by, and its source. */
export interface GivenValue {
  name: string
  value: string
  from: 'environment' | 'file'
}

/** The variables of a `.env` file; none when the file does not exist. */
export function readEnvFile(path: string): Environment {
  try {
    return parseEnv(readFileSync(path, 'utf8')) as Environment
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return {}
    throw error
  }
}

/** Said because values, and with them the white space, are never shown. */
const AROUND = 'the value begins or ends with white space'

/**
 * Reads every variable: `PREFIX_NAME`, then `NAME`, then the aliases; first in the environment, then in the file. Empty
 * means unset. Throws one ConfigError with all problems and all unknown names: a misspelt name often explains a missing
 * one. `warnings` lists the unknown names when there is no problem. Names with `foreignPrefix` are those of another
 * system with the same settings; they are not read. `rulesBroken` finds problems of several values together. It sees
 * the default of an unusable value, so what it says about that variable is left out. `given` has the set variables.
 */
export function readVariables<V extends Variables>(
  variables: V,
  prefix: string,
  environment: Environment,
  file: Environment = {},
  foreignPrefix?: string,
  rulesBroken: (values: Values<V>) => string[] = () => [],
): { values: Values<V>; warnings: string[]; given: Record<string, GivenValue> } {
  const problems: string[] = []
  const unusable: string[] = []
  const values: Record<string, unknown> = {}
  const set: Record<string, GivenValue> = {}
  for (const [name, entry] of Object.entries(variables)) {
    const found = lookUp([prefix + name, name, ...(entry.aliases ?? [])], environment, file)
    if (found) set[name] = found
    if (found === undefined && entry.default === undefined) {
      if (!entry.required) continue
      problems.push(`${prefix}${name} is required: ${entry.meaning}`)
      unusable.push(prefix + name)
      continue
    }
    try {
      values[name] = entry.parse(found?.value ?? (entry.default as string))
    } catch (error) {
      const around = found && found.value !== found.value.trim() ? `; ${AROUND}` : ''
      problems.push(`${found?.name ?? prefix + name} ${(error as Error).message}${around}`)
      unusable.push(prefix + name)
      if (entry.default !== undefined) values[name] = entry.parse(entry.default)
    }
  }
  const broken = rulesBroken(values as Values<V>)
  problems.push(...broken.filter((problem) => !namesIn(problem).some((name) => unusable.includes(name))))
  const given = { ...file, ...environment }
  const foreign = foreignPrefix === undefined ? [] : foreignNames(variables, prefix, foreignPrefix, given)
  const warnings = [...unknownNames(variables, prefix, given), ...foreign]
  if (problems.length > 0) throw new ConfigError([...problems, ...warnings])
  return { values: values as Values<V>, warnings, given: set }
}

const namesIn = (problem: string): string[] => problem.match(/[A-Z][A-Z\d]*(_[A-Z\d]+)+/g) ?? []

/** Drops trailing line ends: a Secret made from a file has one, which would make the key differ from the peer's. */
function lookUp(names: string[], environment: Environment, file: Environment): GivenValue | undefined {
  for (const [from, source] of [
    ['environment', environment],
    ['file', file],
  ] as const) {
    for (const name of names) {
      const value = source[name]?.replace(/[\r\n]+$/, '')
      if (value) return { name, value, from }
    }
  }
  return undefined
}

function unknownNames(variables: Variables, prefix: string, environment: Environment): string[] {
  const known = Object.keys(variables)
  const aliases = Object.values(variables).flatMap(({ aliases = [] }) => aliases)
  const unknown = Object.keys(environment).filter((name) => name.startsWith(prefix) && !aliases.includes(name))
  return unknown
    .filter((name) => !known.includes(name.slice(prefix.length)))
    .map((name) => {
      const closest = nearest(name.slice(prefix.length), known)
      return `${name} is not a known variable${closest ? `; the nearest known one is ${prefix}${closest}` : ''}`
    })
}

/** Names of another system's settings that are given no value here, with the name that is read. */
function foreignNames(variables: Variables, prefix: string, foreignPrefix: string, environment: Environment): string[] {
  const known = Object.entries(variables)
  const bareNames = Object.keys(environment)
    .filter((name) => name.startsWith(foreignPrefix) && environment[name])
    .map((name) => name.slice(foreignPrefix.length))
  return bareNames.flatMap((bare) => {
    const [name, { aliases = [] } = {}] = known.find(([each, entry]) => each === bare || isAlias(entry, bare)) ?? []
    if (name === undefined) {
      const closest = nearest(bare, Object.keys(variables))
      return [
        `${foreignPrefix}${bare} is not read${closest ? `; the nearest known variable is ${prefix}${closest}` : ''}`,
      ]
    }
    const isGiven = [prefix + name, name, ...aliases].some((each) => environment[each])
    return isGiven ? [] : [`${foreignPrefix}${bare} is not read; the variable is ${prefix}${name}`]
  })
}

const isAlias = ({ aliases = [] }: Variables[string], name: string) => aliases.includes(name)

export function variablesTable(variables: Variables, prefix: string): string {
  const rows = Object.entries(variables).map(([name, entry]) => {
    const fallback = entry.required ? 'required' : entry.default === undefined ? '–' : `\`${entry.default || ' '}\``
    const aliases = entry.aliases ? ` (also ${entry.aliases.map((alias) => `\`${alias}\``).join(', ')})` : ''
    return `| \`${prefix}${name}\`${aliases} | ${entry.type} | ${fallback} | ${entry.meaning.replaceAll('|', '\\|')} |`
  })
  return ['| Variable | Type | Default | Meaning |', '| --- | --- | --- | --- |', ...rows].join('\n')
}
