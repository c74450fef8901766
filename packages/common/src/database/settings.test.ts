import { expect, test } from 'vitest'
import { type ConfigError, readVariables } from '../config/variables.ts'
import { databaseSettings, databaseVariables } from './settings.ts'

const variables = databaseVariables({ poolSize: { meaning: '', default: '5' }, exampleTable: '' })
const read = (url: string) => readVariables(variables, 'X_', { X_DATABASE_URL: url }).values.DATABASE_URL

test.each([
  'postgres://auth:hunter2@db.internal/auth',
  'postgresql://auth@[::1]:5432/auth?sslmode=verify-full&sslrootcert=/etc/authority/ca.crt',
  'postgres://auth:100%@db/auth',
  'postgres://auth:p%23ss%2Fw%40rd@db/auth',
  'postgres:///auth?host=/run/postgresql',
  'postgres://db',
])('%s is a valid database URL', (url) => {
  expect(read(url)).toBe(url)
})

test.each([
  'mysql://auth:hunter2@db/auth',
  'host=db dbname=auth password=hunter2',
  'postgres:hunter2',
  'postgres://',
  'postgres://auth:hunter2#x@db/auth',
  'postgres://auth:2#hunter2@db/auth',
  'postgres://auth:hunter2?x@db/auth',
  'postgres://auth:hunter2@x/y@db/auth',
  'postgres://auth:hunter2@db/auth ',
  ' postgres://auth:hunter2@db/auth',
  'postgres://auth:hunter2@db:port/auth',
])('%j, which leads to another host or none, is reported by name, never by value', (url) => {
  try {
    expect.fail(`taken: ${read(url)}`)
  } catch (error) {
    const [problem] = (error as ConfigError).problems ?? [String(error)]
    expect(problem).toMatch(/^X_DATABASE_URL must be postgres:\/\/user:password@host\/database/)
    expect(problem).not.toContain('hunter2')
  }
})

test('without an address past the pooler all connections use DATABASE_URL', () => {
  const settings = (environment: Record<string, string>) =>
    databaseSettings(readVariables(variables, 'X_', { X_DATABASE_URL: 'postgres://pooler/x', ...environment }).values)
  expect(settings({})).toMatchObject({ pooler: 'none', directUrl: 'postgres://pooler/x' })
  const given = { X_DATABASE_POOLER: 'transaction', X_DATABASE_DIRECT_URL: 'postgres://db/x' }
  expect(settings(given)).toMatchObject({
    url: 'postgres://pooler/x',
    pooler: 'transaction',
    directUrl: 'postgres://db/x',
  })
  expect(() => settings({ X_DATABASE_DIRECT_URL: 'db:5432' })).toThrow('X_DATABASE_DIRECT_URL must be postgres://')
})

test.each([
  ['postgres://a,b/db', 'must name one host; DATABASE_FALLBACK_URLS has'],
  ['postgres://auth:hunter2@a:1,b:2/db', 'must name one host; DATABASE_FALLBACK_URLS has'],
  ['postgres:///db?host=a,b', 'must name one host; DATABASE_FALLBACK_URLS has'],
  ['postgres:///db?user=auth&host=a%2Cb', 'must name one host; DATABASE_FALLBACK_URLS has'],
  [
    'postgres://a/db?target_session_attrs=read-write',
    'must not have target_session_attrs; with DATABASE_FALLBACK_URLS',
  ],
])('%s, which only libpq understands, is refused with the setting to use', (url, reason) => {
  expect(() => read(url)).toThrow(`X_DATABASE_URL ${reason}`)
})

test('the password and the parameters of a database URL may contain commas', () => {
  const url = 'postgres://auth:hunt,er2@db/auth?options=-c%20search_path=a,b'
  expect(read(url)).toBe(url)
})

const readFallbacks = (urls: string) => {
  const environment = { X_DATABASE_URL: 'postgres://a/db', X_DATABASE_FALLBACK_URLS: urls }
  return readVariables(variables, 'X_', environment).values.DATABASE_FALLBACK_URLS
}

test('fallback URLs are separated by commas or white space, and each is a complete URL', () => {
  expect(readFallbacks('')).toEqual([])
  expect(readFallbacks('postgres://b/db, postgres://c/db\n postgres://d/db')).toEqual([
    'postgres://b/db',
    'postgres://c/db',
    'postgres://d/db',
  ])
  for (const urls of ['b', 'postgres://b/db,c', 'postgres://auth:hunter2@b,c/db']) {
    expect(() => readFallbacks(urls)).toThrow('X_DATABASE_FALLBACK_URLS must be postgres://user:password@host/database')
  }
})
