import pg from 'pg'
import { expect, test } from 'vitest'
import { explainStartFailure, failureCode } from './explain-start-failure.ts'

const failure = (message: string, facts: object) => explainStartFailure(Object.assign(new Error(message), facts), {})

test.each([
  ['self-signed certificate', 'DEPTH_ZERO_SELF_SIGNED_CERT'],
  ['self-signed certificate in certificate chain', 'SELF_SIGNED_CERT_IN_CHAIN'],
  ['unable to get local issuer certificate', 'UNABLE_TO_GET_ISSUER_CERT_LOCALLY'],
  ['unable to verify the first certificate', 'UNABLE_TO_VERIFY_LEAF_SIGNATURE'],
  ['certificate has expired', 'CERT_HAS_EXPIRED'],
  ["Hostname/IP does not match certificate's altnames", 'ERR_TLS_CERT_ALTNAME_INVALID'],
])('an untrusted certificate (%s) is explained with its remedy', (message, code) => {
  const explained = failure(message, { code })
  expect(explained).toContain(message)
  expect(explained).toContain('sslrootcert=')
})

test.each([
  ["EACCES: permission denied, mkdir '/data/blobs'", { code: 'EACCES', syscall: 'mkdir', path: '/data/blobs' }],
  ["EROFS: read-only file system, mkdir '/data/blobs'", { code: 'EROFS', syscall: 'mkdir', path: '/data/blobs' }],
  ["EACCES: permission denied, open '.env'", { code: 'EACCES', syscall: 'open', path: '.env' }],
  ['EISDIR: illegal operation on a directory, read', { code: 'EISDIR', syscall: 'read' }],
])('an unusable path (%s) is named', (message, facts) => {
  expect(failure(message, facts)).toBe(`A required file or folder cannot be used: ${message}`)
})

test.each([
  ['relation "event_users" does not exist', '42P01'],
  ['column "version" does not exist', '42703'],
])('tables of another version (%s) are explained with their remedy', (message, code) => {
  expect(failure(message, { code })).toMatch(
    new RegExp(`^The database has tables of another version: ${message}\\. .*migrate status.*delete \\.data`),
  )
})

test('a pooler that refuses our time limits is a wrong setting, with its name', () => {
  const refusal = new pg.DatabaseError('unsupported startup parameter: statement_timeout', 0, 'error')
  refusal.code = '08P01'
  expect(explainStartFailure(refusal, {})).toMatch(
    /statement_timeout.*DATABASE_POOLER=transaction.*ignore_startup_parameters/,
  )
  expect(failureCode(refusal)).toBe(78)
})

test('a failure that the operator cannot fix has no explanation', () => {
  expect(failure('boom', {})).toBeUndefined()
  expect(failure('read ECONNRESET', { code: 'ECONNRESET', syscall: 'read' })).toBeUndefined()
})
