import { command, printResult, UsageError } from '@services/common/process/command-line'
import { changeTokenAs, createTokenAs, revokeTokenAs } from '../../core/tokens/create-token.ts'
import { USUAL_SCOPES } from '../../core/tokens/scopes.ts'
import { type ApiToken, listTokens } from '../../core/tokens/tokens.store.ts'
import { listUsage, type TokenUsage } from '../../core/tokens/usage.store.ts'
import { isUuid } from '../../db/uuid.ts'
import { byOperator, onDatabase } from '../../on-database.ts'
import { LIMITS_EXAMPLE, readTokenOptions } from './token-options.ts'

const tokensCreate = command({
  name: 'tokens create',
  summary: 'create an API token; it is shown once',
  options: {
    name: { value: 'NAME', meaning: 'purpose of the token' },
    scopes: { value: 'LIST', meaning: 'any of write, read, delete, admin; default write,read,delete' },
    limits: { value: 'LIST', meaning: `limits in place of the service's, as in ${LIMITS_EXAMPLE}` },
    expires: { value: 'DURATION', meaning: 'lifetime, as in 30d; default never' },
  },
  run: async ({ options, json }) => {
    const input = { name: 'unnamed', scopes: USUAL_SCOPES, ...readTokenOptions(options, new Date()) }
    const { token, ...row } = await onDatabase((deps) => createTokenAs(deps, byOperator(deps), input))
    printResult(json, { token, ...toJson(row) }, token)
    if (!json)
      process.stderr.write(`Token ${row.id} (${row.name}) may ${row.scopes.join(', ')}. It is not shown again.\n`)
  },
})

const tokensList = command({
  name: 'tokens list',
  summary: 'list tokens without their secret parts',
  run: async ({ json }) => {
    const tokens = await onDatabase(({ db }) => listTokens(db))
    if (json || tokens.length > 0) printResult(json, tokens.map(toJson), tokens.map(toLine).join('\n'))
  },
})

const tokensUpdate = command({
  name: 'tokens update',
  summary: 'change the given settings of a token',
  operands: ['ID'],
  options: {
    name: { value: 'NAME', meaning: 'purpose of the token' },
    scopes: { value: 'LIST', meaning: 'any of write, read, delete, admin' },
    limits: { value: 'LIST', meaning: `all limits of its own, as in ${LIMITS_EXAMPLE}; none for the service's` },
    expires: { value: 'DURATION', meaning: 'lifetime from now, as in 30d, or never' },
  },
  run: async ({ operands: [id = ''], options, json }) => {
    const changes = readTokenOptions(options, new Date())
    if (Object.keys(changes).length === 0) throw new UsageError('needs something to change')
    const token = isUuid(id)
      ? await onDatabase((deps) => changeTokenAs(deps, byOperator(deps), id, changes))
      : undefined
    if (!token) throw new UsageError(`no token of this id, or it is revoked: ${id}`)
    printResult(json, toJson(token), `${token.id} (${token.name}) is changed`)
  },
})

const tokensRevoke = command({
  name: 'tokens revoke',
  summary: 'revoke a token at once',
  operands: ['ID'],
  run: async ({ operands: [id = ''], json }) => {
    const token = isUuid(id) ? await onDatabase((deps) => revokeTokenAs(deps, byOperator(deps), id)) : undefined
    if (!token) throw new UsageError(`no token of this id is good: ${id}`)
    const { sessions_ended: ended } = token
    printResult(json, toJson(token), `${token.id} (${token.name}) is revoked; sessions of browsers ended: ${ended}`)
  },
})

const tokensUsage = command({
  name: 'tokens usage',
  summary: 'show storage of tokens, and their calls today and in thirty days (UTC)',
  operands: ['[ID]'],
  run: async ({ operands: [id], json }) => {
    if (id !== undefined && !isUuid(id)) throw new UsageError(`no token of this id: ${id}`)
    const usages = await onDatabase(({ db }) => listUsage(db, id, new Date()))
    if (id !== undefined && usages.length === 0) throw new UsageError(`no token of this id: ${id}`)
    if (json || usages.length > 0) printResult(json, usages, usages.map(toUsageLine).join('\n'))
  },
})

export const tokenCommands = [tokensCreate, tokensList, tokensUpdate, tokensRevoke, tokensUsage]

function toLine(token: ApiToken): string {
  const state = token.revoked_at ? 'revoked' : token.expires_at && token.expires_at < new Date() ? 'expired' : 'good'
  const used = token.last_used_at ? `used ${token.last_used_at.toISOString()}` : 'never used'
  return [token.id, `${token.prefix}…`, state.padEnd(7), token.scopes.join(','), used, token.name].join('  ')
}

function toUsageLine({ id, name, stored, today, last_30_days: month }: TokenUsage): string {
  const reserved = stored.reserved_bytes > 0 ? ` and ${stored.reserved_bytes} reserved` : ''
  const kept = `${stored.clips} clips of ${stored.bytes} bytes${reserved}`
  const did = (day: TokenUsage['today']) => `${day.requests} calls, ${day.clips} clips of ${day.bytes} bytes`
  return [id, `keeps ${kept}`, `today ${did(today)}`, `30 days ${did(month)}`, name].join('  ')
}

function toJson<Token extends ApiToken>({ is_bootstrap: _hidden, ...token }: Token) {
  return token
}
