import { parseDurationSeconds } from '@services/common/duration'
import type { Kysely } from 'kysely'
import type { DB, Scope, TokenLimits } from '../db/tables.ts'
import { ALL_SCOPES } from './bootstrap-token.ts'
import { createToken } from './create-token.ts'
import { type ApiToken, listTokens, revokeToken } from './tokens.store.ts'

interface Options {
  name?: string | undefined
  scopes?: string | undefined
  limits?: string | undefined
  expires?: string | undefined
  json?: boolean | undefined
}

interface CommandDeps {
  db: Kysely<DB>
  newId: () => string
  now: () => Date
}

const print = (line: string) => process.stdout.write(`${line}\n`)

/** `tokens create`: prints the token, which nobody can show again. */
export async function createCommand(deps: CommandDeps, options: Options): Promise<void> {
  const input = readOptions(options, deps.now())
  if (typeof input === 'string') return complain(input)
  const { token, ...row } = await createToken(deps, input)
  if (options.json) return void print(JSON.stringify({ token, ...toJson(row) }))
  print(token)
  process.stderr.write(`Token ${row.id} (${row.name}) may ${row.scopes.join(', ')}. It is not shown again.\n`)
}

export async function listCommand(db: Kysely<DB>, { json }: Options): Promise<void> {
  const tokens = await listTokens(db)
  if (json) return void print(JSON.stringify(tokens.map(toJson)))
  for (const token of tokens) {
    const state = token.revoked_at ? 'revoked' : token.expires_at && token.expires_at < new Date() ? 'expired' : 'good'
    const used = token.last_used_at ? `used ${token.last_used_at.toISOString()}` : 'never used'
    print([token.id, `${token.prefix}…`, state.padEnd(7), token.scopes.join(','), used, token.name].join('  '))
  }
}

export async function revokeCommand({ db, now }: CommandDeps, id: string, { json }: Options): Promise<void> {
  const isId = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i.test(id)
  const token = isId ? await revokeToken(db, id, now()) : undefined
  if (!token) return complain(`no token of this id is good: ${id}`)
  print(json ? JSON.stringify(toJson(token)) : `${token.id} (${token.name}) is revoked`)
}

function toJson({ is_bootstrap: _hidden, ...token }: ApiToken) {
  return token
}

/** What to create, or what is wrong with the options. */
function readOptions(options: Options, now: Date): Parameters<typeof createToken>[1] | string {
  const scopes = listOf(options.scopes ?? 'write,read,delete')
  if (scopes.length === 0 || !scopes.every(isScope)) return `--scopes must be some of ${ALL_SCOPES.join(', ')}`
  const limits = readLimits(listOf(options.limits ?? ''))
  if (!limits) return '--limits must look like upload=1000,import=500,read=5000'
  const seconds = options.expires === undefined ? undefined : parseDurationSeconds(options.expires)
  if (options.expires !== undefined && !seconds) return '--expires must be seconds or a duration such as 720h'
  return {
    name: options.name?.trim() || 'unnamed',
    scopes,
    limits,
    expiresAt: seconds === undefined ? null : new Date(now.getTime() + seconds * 1000),
  }
}

function readLimits(entries: string[]): TokenLimits | undefined {
  const pairs = entries.map((entry) => /^(upload|import|read)=([1-9]\d{0,8})$/.exec(entry))
  if (!pairs.every((pair) => pair !== null)) return undefined
  return Object.fromEntries(pairs.map(([, name, points]) => [name, Number(points)]))
}

const isScope = (text: string): text is Scope => (ALL_SCOPES as readonly string[]).includes(text)

const listOf = (text: string) =>
  text
    .split(',')
    .map((item) => item.trim())
    .filter(Boolean)

function complain(sentence: string): void {
  process.stderr.write(`${sentence}\n`)
  process.exitCode = 64
}
