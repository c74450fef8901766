import { randomUUID } from 'node:crypto'
import { command, printResult, UsageError } from '@services/common/cli'
import { withDatabase } from '@services/common/database'
import { parseDurationSeconds } from '@services/common/duration'
import type { Kysely } from 'kysely'
import { type DB, type Scope, TABLES, TOKEN_LIMITS, type TokenLimits } from '../db/tables.ts'
import { startUp } from '../start.ts'
import { isTokenId } from './api-token.ts'
import { ALL_SCOPES } from './bootstrap-token.ts'
import { createToken } from './create-token.ts'
import { type ApiToken, listTokens, revokeToken } from './tokens.store.ts'

const LIMITS_EXAMPLE = 'upload=1000,import=500,read=5000,queued=20,quota_bytes=20G,daily_bytes=5G'
const LIMITS_MEANING = `other limits than the service's, as in ${LIMITS_EXAMPLE}`

/** `tokens create`: prints the token, which nobody can show again. */
const tokensCreate = command({
  name: 'tokens create',
  summary: 'make an API token; it is shown this once',
  options: {
    name: { value: 'NAME', meaning: 'what it is for' },
    scopes: { value: 'LIST', meaning: 'of write, read, delete, admin; write,read,delete if absent' },
    limits: { value: 'LIST', meaning: LIMITS_MEANING },
    expires: { value: 'DURATION', meaning: 'as in 720h; never if absent' },
  },
  run: async ({ options, json }) => {
    const input = readOptions(options, new Date())
    const deps = { newId: randomUUID, now: () => new Date() }
    const { token, ...row } = await onDatabase((db) => createToken({ db, ...deps }, input))
    printResult(json, { token, ...toJson(row) }, token)
    if (!json)
      process.stderr.write(`Token ${row.id} (${row.name}) may ${row.scopes.join(', ')}. It is not shown again.\n`)
  },
})

const tokensList = command({
  name: 'tokens list',
  summary: 'list tokens, without the secret part',
  run: async ({ json }) => {
    const tokens = await onDatabase(listTokens)
    if (json || tokens.length > 0) printResult(json, tokens.map(toJson), tokens.map(toLine).join('\n'))
  },
})

const tokensRevoke = command({
  name: 'tokens revoke',
  summary: 'end a token at once',
  operands: ['ID'],
  run: async ({ operands: [id = ''], json }) => {
    const token = isTokenId(id) ? await onDatabase((db) => revokeToken(db, id, new Date())) : undefined
    if (!token) throw new UsageError(`no token of this id is good: ${id}`)
    printResult(json, toJson(token), `${token.id} (${token.name}) is revoked`)
  },
})

export const tokenCommands = [tokensCreate, tokensList, tokensRevoke]

function onDatabase<Result>(work: (db: Kysely<DB>) => Promise<Result>): Promise<Result> {
  const { config, log } = startUp({ toStderr: true })
  return withDatabase({ ...config.database, applicationName: 'media cli', log, tables: TABLES }, work)
}

function toLine(token: ApiToken): string {
  const state = token.revoked_at ? 'revoked' : token.expires_at && token.expires_at < new Date() ? 'expired' : 'good'
  const used = token.last_used_at ? `used ${token.last_used_at.toISOString()}` : 'never used'
  return [token.id, `${token.prefix}…`, state.padEnd(7), token.scopes.join(','), used, token.name].join('  ')
}

function toJson({ is_bootstrap: _hidden, ...token }: ApiToken) {
  return token
}

/** No date may lie beyond what dates can say. */
const LONGEST_LIFE_SECONDS = 876_000 * 3600

interface CreateOptions {
  name?: string | undefined
  scopes?: string | undefined
  limits?: string | undefined
  expires?: string | undefined
}

/** What to create; throws UsageError. */
function readOptions(options: CreateOptions, now: Date): Parameters<typeof createToken>[1] {
  const scopes = listOf(options.scopes ?? 'write,read,delete')
  if (scopes.length === 0 || !scopes.every(isScope))
    throw new UsageError(`--scopes must be some of ${ALL_SCOPES.join(', ')}`)
  const limits = readLimits(listOf(options.limits ?? ''))
  if (!limits) throw new UsageError(`--limits must look like ${LIMITS_EXAMPLE}`)
  const seconds = options.expires === undefined ? undefined : parseDurationSeconds(options.expires)
  if (options.expires !== undefined && !seconds)
    throw new UsageError('--expires must be seconds or a duration such as 720h')
  if (seconds !== undefined && seconds > LONGEST_LIFE_SECONDS)
    throw new UsageError('--expires must be at most 876000h, which is 100 years')
  return {
    name: options.name?.trim() || 'unnamed',
    scopes,
    limits,
    expiresAt: seconds === undefined ? null : new Date(now.getTime() + seconds * 1000),
  }
}

const UNITS: Record<string, number> = { '': 1, K: 1024, M: 1024 ** 2, G: 1024 ** 3, T: 1024 ** 4 }

/** `quota_bytes=20G` and the like; undefined where it cannot be read. */
function readLimits(entries: string[]): TokenLimits | undefined {
  const pairs = entries.map((entry) => /^([a-z_]+)=([1-9]\d{0,8})([KMGT]?)$/.exec(entry))
  const isRight = (pair: RegExpExecArray | null) =>
    TOKEN_LIMITS.some((name) => name === pair?.[1]) && (pair?.[3] === '' || pair?.[1]?.endsWith('_bytes'))
  if (!pairs.every((pair) => isRight(pair))) return undefined
  return Object.fromEntries(pairs.map((pair) => [pair?.[1], Number(pair?.[2]) * (UNITS[pair?.[3] ?? ''] ?? 1)]))
}

const isScope = (text: string): text is Scope => (ALL_SCOPES as readonly string[]).includes(text)

const listOf = (text: string) =>
  text
    .split(',')
    .map((item) => item.trim())
    .filter(Boolean)
