import { request as httpRequest } from 'node:http'
import type { AddressInfo } from 'node:net'
import Fastify from 'fastify'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { readConfig } from '../../config.ts'
import { externalBase } from './mail-context.ts'

const DEFAULT = 'https://auth.example/auth/v1'
const LISTED = ['eu.example', 'us.example', 'localhost']
const app = Fastify()
app.get('/base', (request) => externalBase(request, { server: { externalUrl: DEFAULT, externalHosts: LISTED } }))
app.get('/unlisted', (request) => externalBase(request, { server: { externalUrl: DEFAULT, externalHosts: [] } }))
let port: number

beforeAll(async () => {
  await app.listen({ host: '127.0.0.1', port: 0 })
  port = (app.server.address() as AddressInfo).port
})
afterAll(() => app.close())

/** Sends the request target as written, which may be a whole URL. */
async function ask(path: string, headers: Record<string, string> = {}): Promise<string> {
  const { promise, resolve, reject } = Promise.withResolvers<string>()
  httpRequest({ host: '127.0.0.1', port, path, headers }, async (response) => {
    let text = ''
    for await (const chunk of response) text += chunk
    resolve(text)
  })
    .on('error', reject)
    .end()
  return promise
}

test.for<[string, Record<string, string>, string]>([
  ['no header', {}, DEFAULT],
  ['a listed host', { 'x-forwarded-host': 'eu.example' }, 'https://eu.example'],
  ['a listed host in capitals', { 'x-forwarded-host': 'US.Example' }, 'https://us.example'],
  ['a listed host over http', { 'x-forwarded-host': 'eu.example', 'x-forwarded-proto': 'http' }, 'https://eu.example'],
  ['this machine', { 'x-forwarded-host': 'localhost', 'x-forwarded-proto': 'http' }, 'http://localhost'],
  ['this machine over TLS', { 'x-forwarded-host': 'localhost', 'x-forwarded-proto': 'https' }, 'https://localhost'],
  ['a host that is not listed', { 'x-forwarded-host': 'evil.test' }, DEFAULT],
  ['a longer name', { 'x-forwarded-host': 'eu.example.evil.test' }, DEFAULT],
  ['a subdomain', { 'x-forwarded-host': 'a.eu.example' }, DEFAULT],
  ['a listed host with userinfo', { 'x-forwarded-host': 'eu.example@evil.test' }, DEFAULT],
  ['a listed host with a path', { 'x-forwarded-host': 'eu.example/evil' }, DEFAULT],
  ['a listed host with a port', { 'x-forwarded-host': 'eu.example:8443' }, DEFAULT],
  ['several hosts', { 'x-forwarded-host': 'eu.example, evil.test' }, DEFAULT],
  ['only a Host header', { host: 'eu.example' }, DEFAULT],
])('%s', async ([, headers, base]) => {
  expect(await ask('/base', headers)).toBe(base)
})

test('the host of a whole target counts, a forwarded one before it', async () => {
  expect(await ask('http://us.example/base')).toBe('https://us.example')
  expect(await ask('http://localhost/base')).toBe('http://localhost')
  expect(await ask('http://us.example/base', { 'x-forwarded-host': 'eu.example' })).toBe('https://eu.example')
  expect(await ask('http://us.example/base', { 'x-forwarded-host': 'evil.test' })).toBe(DEFAULT)
})

test('without a list no host of a request is believed', async () => {
  expect(await ask('/unlisted', { 'x-forwarded-host': 'eu.example' })).toBe(DEFAULT)
})

test.for<[string, string[] | 'refused']>([
  ['eu.example, US.example', ['eu.example', 'us.example']],
  ['https://eu.example', 'refused'],
  ['eu.example:8443', 'refused'],
  ['eu.example/path', 'refused'],
  ['*.example', 'refused'],
])('the list %j is %j', ([list, hosts]) => {
  const read = () =>
    readConfig({
      AUTH_SITE_URL: 'https://site.example',
      AUTH_API_EXTERNAL_URL: DEFAULT,
      AUTH_DATABASE_URL: 'postgres://localhost/auth',
      AUTH_JWT_SECRET: 'a-secret-of-the-tests-with-32-bytes-or-more',
      AUTH_EXTERNAL_EMAIL_ENABLED: 'false',
      AUTH_MAILER_EXTERNAL_HOSTS: list,
    }).config.server.externalHosts
  if (hosts === 'refused') expect(read).toThrow('AUTH_MAILER_EXTERNAL_HOSTS')
  else expect(read()).toEqual(hosts)
})
