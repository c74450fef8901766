// All sealed columns, each filled through the public door and walked over.
import { randomBytes } from 'node:crypto'
import { sql } from 'kysely'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import {
  type OpenIdProvider,
  type ProviderAccount,
  signInAt,
  startOpenIdProvider,
} from '../../../test/openid-provider.ts'
import { challenge, enrollTotp, totpCode } from '../../../test/second-factors.ts'
import { fragmentOf, linkPath, queryOf, SECRET, startTestService, type TestService } from '../../../test/service.ts'
import { rotateSealedRows } from '../../flows/commands/encryption/rotate.ts'
import { type Cell, createEncryption } from './encryption.ts'
import { parseEncryptionKeys, withUnnamed } from './encryption-keys.ts'
import { SEALED, SEALED_COLUMNS, type SealedColumn } from './sealed-columns.ts'

const NOW = `now:${randomBytes(32).toString('base64url')}`

let corp: OpenIdProvider
let settings: Record<string, string>
let service: TestService
beforeAll(async () => {
  corp = await startOpenIdProvider()
  settings = {
    ...corp.settings('OIDC_CORP'),
    AUTH_EXTERNAL_OIDC_CORP_EMAIL_OPTIONAL: 'true',
    AUTH_SMTP_MAX_FREQUENCY: '0',
    AUTH_EGRESS_ALLOW_CIDRS: '127.0.0.0/8',
  }
  service = await startTestService({ ...settings, AUTH_ENCRYPTION_KEYS: NOW, AUTH_WORKERS_ENABLED: 'false' })
  for (const name of NAMES) uses[name] = await MAKERS[name]()
  for (const name of NAMES) stored[name] = await readRows(SEALED[name])
  sealedColumns = await findSealedColumns()
})
afterAll(async () => {
  await service.close()
  await corp.close()
})

/** Proof that a replica can use what was stored; throws otherwise. */
type Use = (replica: TestService) => Promise<void>

const NAMES = Object.keys(SEALED) as (keyof typeof SEALED)[]
const uses: Partial<Record<keyof typeof SEALED, Use>> = {}
/** Rows as they were made; later tests move and use them. */
const stored: Partial<Record<keyof typeof SEALED, Row[]>> = {}
let sealedColumns: string[]

const VERIFIER = 'v'.repeat(43)
const PKCE = { code_challenge: VERIFIER, code_challenge_method: 'plain' }

const comeTo = (person: ProviderAccount, query = '') => {
  corp.next(person)
  return signInAt(service, corp, `/authorize?provider=corp${query}`)
}

/** The mail as it waits in the outbox. */
async function waitingMailTo(email: string): Promise<string> {
  const { rows } = await service.deps.pool.query<Record<'id' | 'sealed', string>>('select id, sealed from messages')
  const contents = rows.map((row) => service.deps.encryption.open(SEALED.message, row) as Record<string, unknown>)
  const { variables } = contents.findLast(({ to }) => to === email) as { variables: { ConfirmationURL: string } }
  return linkPath(variables.ConfirmationURL)
}

/** A sign-in with an account whose address is not verified; the link of its mail links the account. */
async function unprovenAccount(email: string) {
  const answer = await comeTo({ sub: email, email, email_verified: false })
  expect(queryOf(answer).error_code).toBe('provider_email_needs_verification')
  const link = await waitingMailTo(email)
  return async (replica: TestService) => {
    const { access_token } = fragmentOf(await replica.get(link))
    const { body } = await replica.get('/user', { authorization: `Bearer ${access_token}` })
    expect(body.app_metadata.providers).toContain('corp')
  }
}

const MAKERS: Record<keyof typeof SEALED, () => Promise<Use>> = {
  async factorSecret() {
    const user = await service.signedIn()
    const totp = await enrollTotp(service, user)
    return async (replica) => {
      const challenge_id = await challenge(replica, user, totp.id)
      const code = totpCode(totp.secret, replica.clock.now())
      expect((await replica.post(`/factors/${totp.id}/verify`, { challenge_id, code }, user.auth)).status).toBe(200)
    }
  },
  async message() {
    await service.post('/signup', { email: 'waiting@example.com', password: 'correct horse' })
    return async ({ deps }) => {
      const others = { AUTH_DATABASE_URL: deps.config.database.url, AUTH_ENCRYPTION_KEYS: keysOf(deps.config) }
      const worker = await startTestService({ ...settings, ...others }, service.clock)
      expect((await worker.mailbox.waitFor('waiting@example.com')).text).toContain('/verify')
      await worker.close()
    }
  },
  async attempt() {
    const begun = await service.get('/authorize?provider=corp')
    return async (replica) => {
      corp.next({ sub: 'attempt', email: 'attempt@example.com', email_verified: true })
      const callback = await corp.visit(String(begun.headers.location))
      expect(fragmentOf(await replica.get(callback.pathname + callback.search)).access_token).toBeTruthy()
    }
  },
  async providerTokens() {
    const person = { sub: 'tokens', email: 'tokens@example.com', email_verified: true }
    const { code } = queryOf(await comeTo(person, `&${new URLSearchParams(PKCE)}`))
    return async (replica) => {
      const exchange = { auth_code: code, code_verifier: VERIFIER }
      expect((await replica.post('/token?grant_type=pkce', exchange)).body.provider_token).toBeTruthy()
    }
  },
  unprovenAccount: () => unprovenAccount('unproven@example.com'),
  async clientSecret() {
    const given = { client_id: 'our-client', client_secret: 'a-secret-of-the-client', issuer: corp.issuer }
    const custom = {
      provider_type: 'oidc',
      identifier: 'custom:sealed',
      name: 'Sealed',
      email_optional: true,
      ...given,
    }
    expect((await service.post('/admin/custom-providers', custom, service.admin)).status).toBe(201)
    return async (replica) => {
      corp.next({ sub: 'sealed' })
      expect(fragmentOf(await signInAt(replica, corp, '/authorize?provider=custom:sealed')).access_token).toBeTruthy()
    }
  },
  async earlierUnprovenAccount() {
    const email = 'earlier@example.com'
    const use = await unprovenAccount(email)
    await service.post('/signup', { email, password: 'correct horse', ...PKCE })
    return use
  },
  async webhookSecrets() {
    const url = 'https://127.0.0.1:1/events'
    const { body } = await service.post('/admin/webhooks', { url, enabled: false }, service.admin)
    return async (replica) => {
      const rotated = await replica.post(`/admin/webhooks/${body.id}/rotate-secret`, {}, replica.admin)
      expect([rotated.status, rotated.body.secret]).not.toEqual([200, body.secret])
      expect(rotated.status).toBe(200)
    }
  },
}

const keysOf = ({ encryption }: TestService['deps']['config']) =>
  encryption.keys
    .filter(({ id }) => id !== null)
    .map(({ id, secret }) => `${id}:${Buffer.from(secret).toString('base64url')}`)
    .join()

type Row = Record<string, Cell>

async function readRows({ table, column }: SealedColumn): Promise<Row[]> {
  const { rows } = await service.deps.pool.query<Row>(`select * from ${table} where ${column} is not null`)
  expect(rows.length).toBeGreaterThan(0)
  return rows
}

/** Another value of the same type. */
const changed = (cell: Cell | undefined): Cell =>
  Buffer.isBuffer(cell) ? randomBytes(cell.length) : String(cell).replace(/.$/, (end) => (end === '0' ? '1' : '0'))

test.each(NAMES)('%s names its key and opens only in its own row and column', (name) => {
  const column: SealedColumn = SEALED[name]
  const { encryption } = service.deps
  const unnamed = createEncryption({ ...service.deps.config.encryption, keys: [{ id: null, secret: 'x' }] })
  for (const row of stored[name] ?? []) {
    expect(row[column.column]).toMatch(/^v2\.now\.[A-Za-z0-9+/]+=*$/)
    expect(encryption.open(column, row)).toBeTruthy()
    for (const name of column.boundTo) {
      expect(() => encryption.open(column, { ...row, [name]: changed(row[name]) })).toThrow('moved from another row')
    }
    for (const other of SEALED_COLUMNS) {
      const isSame = (other.movedFrom ?? other.table) === (column.movedFrom ?? column.table)
      const bound = Object.fromEntries(other.boundTo.map((name, at) => [name, row[column.boundTo[at] ?? ''] ?? null]))
      const moved = { ...bound, [other.column]: row[column.column] ?? null }
      if (!isSame) expect(() => encryption.open(other, moved)).toThrow('moved from another row')
    }
    expect(() => unnamed.open(column, row)).toThrow('the key now, which AUTH_ENCRYPTION_KEYS does not have')
  }
})

/** All columns of the database in which a sealed text stands. */
async function findSealedColumns(): Promise<string[]> {
  const { rows: columns } = await sql<Record<'table_name' | 'column_name', string>>`
    select table_name, column_name from information_schema.columns
    where table_schema = current_schema() and data_type in ('text', 'jsonb', 'character varying')`.execute(
    service.deps.db,
  )
  const sealed: string[] = []
  for (const { table_name: table, column_name: column } of columns) {
    const { rows } = await service.deps.pool.query(
      `select from ${table} where ${column}::text like '%v2.now.%' limit 1`,
    )
    if (rows.length > 0) sealed.push(`${table}.${column}`)
  }
  return sealed.toSorted()
}

test('no column that is left out of the list holds a sealed text', () => {
  expect(sealedColumns).toEqual(SEALED_COLUMNS.map(({ table, column }) => `${table}.${column}`).toSorted())
})

describe('moved to another key', () => {
  const next = `next:${randomBytes(32).toString('base64url')}`
  let replica: TestService
  beforeAll(async () => {
    const { db, config } = service.deps
    const keys = withUnnamed(parseEncryptionKeys(`${next},${NOW}`), SECRET)
    const rotated = await rotateSealedRows({ db, encryption: createEncryption({ ...config.encryption, keys }) })
    expect(rotated.map(({ table, resealed, unopened }) => [table, resealed > 0, unopened])).toEqual(
      SEALED_COLUMNS.map(({ table }) => [table, true, {}]),
    )
    replica = await service.with({ AUTH_ENCRYPTION_KEYS: next })
  })
  afterAll(() => replica.close())

  test.each(NAMES)('the value of %s is of use to a replica that has only this key', async (name) => {
    const { table, column } = SEALED[name]
    const { rows } = await service.deps.pool.query(
      `select from ${table} where ${column} is not null and ${column} not like 'v2.next.%'`,
    )
    expect(rows).toEqual([])
    await uses[name]?.(replica)
  })
})
