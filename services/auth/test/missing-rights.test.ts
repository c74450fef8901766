import { randomBytes } from 'node:crypto'
import { cloneTemplate } from '@services/common/testing/database/template-database'
import pg from 'pg'
import { afterAll, beforeAll, expect, inject, test } from 'vitest'
import { authHere } from './command-line.ts'
import { createDatabase } from './service.ts'

const serverUrl = inject('databaseServerUrl')
const role = `role_${randomBytes(6).toString('hex')}`
const admin = new pg.Pool({ connectionString: serverUrl, max: 1 })

beforeAll(() => admin.query(`create role ${role} login password 'password'`))
afterAll(async () => {
  await admin.query(`drop role ${role}`)
  await admin.end()
})

/** Runs `migrate` as the role in a database that an administrator has prepared with this SQL. */
async function migrateAfter(preparation: string, database = emptyDatabase()) {
  const { url, drop } = await database
  const owner = new pg.Client({ connectionString: url })
  await owner.connect()
  const as = new URL(url)
  as.username = role
  as.password = 'password'
  try {
    const name = as.pathname.slice(1)
    await owner.query(`revoke create on database ${name} from public; ${preparation}`)
    const settings = { AUTH_DATABASE_URL: as.href, AUTH_DATABASE_POOLER: 'none' }
    return { ...(await authHere(['migrate'], settings)), name }
  } finally {
    await owner.query(`drop owned by ${role} cascade; alter role ${role} in database ${as.pathname.slice(1)} reset all`)
    await owner.end()
    await drop()
  }
}

const emptyDatabase = () => cloneTemplate(serverUrl, `${inject('testRunId')}_empty`, async () => {})

const OWN_SCHEMA = `create schema own authorization ${role};
  do $$ begin execute format('alter role ${role} in database %I set search_path = own', current_database()); end $$;`

test('a role that owns its two schemas needs no other right', async () => {
  const { code, stderr } = await migrateAfter(`${OWN_SCHEMA} create schema auth_queue authorization ${role}`)
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
})

test.each([
  [
    'the queue has no schema, and none may be created',
    OWN_SCHEMA,
    /lacks the right CREATE on database "DATABASE": .*\(statement: CREATE SCHEMA IF NOT EXISTS auth_queue\)/,
  ],
  [
    'the schema of the queue belongs to another role',
    `${OWN_SCHEMA} create schema auth_queue`,
    /lacks the rights USAGE and CREATE on schema "auth_queue": .*\(statement: SELECT to_regclass\('auth_queue\.version'\)/,
  ],
  [
    'the schema of the queue may be used, not changed',
    `${OWN_SCHEMA} create schema auth_queue; grant usage on schema auth_queue to ${role}`,
    /lacks the rights USAGE and CREATE on schema "auth_queue": .*\(statement: CREATE TYPE auth_queue\.job_state /,
  ],
  [
    'public permits no tables',
    'revoke create on schema public from public',
    /lacks the rights USAGE and CREATE on schema "public": .*\(statement: create table "schema_migrations" /,
  ],
  [
    'no schema may be used',
    'revoke all on schema public from public',
    /lacks a schema in its search_path with the rights USAGE and CREATE: .*\(statement: create table "schema_migrations" /,
  ],
])('where %s, migrate names right, schema and statement', async (_case, preparation, message) => {
  const { code, stderr, name } = await migrateAfter(preparation)
  expect(code).toBe(1)
  expect(stderr.replaceAll(name, 'DATABASE')).toMatch(message)
  expect(stderr).toMatch(
    /^The role of DATABASE_URL lacks .* docs\/prepare-the-database\.md has the SQL that grants it\.\n$/,
  )
})

test('tables of another role are named with the ownership that is missing', async () => {
  const { code, stderr } = await migrateAfter('', createDatabase())
  expect({ code, stderr }).toEqual({
    code: 1,
    stderr: expect.stringContaining('lacks the ownership of table "schema_migrations": permission denied for table'),
  })
})
