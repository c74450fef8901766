import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { enrollTotp, totpCode } from './second-factors.ts'
import { startTestService, type TestService, toSignedIn } from './service.ts'

let folder: string
let service: TestService
let forwarded: TestService
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'client-address-'))
  const log = { AUTH_LOG_LEVEL: 'warn', AUTH_LOG_FILE: join(folder, 'log') }
  service = await startTestService({ AUTH_RATE_LIMIT_HEADER: 'X-Real-IP', ...log })
  forwarded = await service.with({
    AUTH_RATE_LIMIT_HEADER: '',
    AUTH_SECURITY_SB_FORWARDED_FOR_ENABLED: 'true',
  })
})
afterAll(async () => {
  await forwarded.close()
  await service.close()
  await rm(folder, { recursive: true })
})

const CLAIM = { 'x-forwarded-for': '8.8.8.8' }
const password = 'correct horse'
let names = 0

/** Signs a new user in, from where the headers say. */
async function signIn(at: TestService, headers: Record<string, string>) {
  const email = `client-${names++}@example.com`
  const { body: user } = await at.post('/admin/users', { email, password, email_confirm: true }, at.admin)
  const { body } = await at.post('/token?grant_type=password', { email, password }, headers)
  return { ...toSignedIn(body), userId: user.id as string }
}

test.for<[string, 'service' | 'forwarded', Record<string, string>, string]>([
  ['the trusted header', 'service', { 'x-real-ip': '10.5.5.5' }, '10.5.5.5'],
  ['the trusted header without its port', 'service', { 'x-real-ip': '10.5.5.5:40001' }, '10.5.5.5'],
  ['the last entry of it', 'service', { 'x-real-ip': '8.8.4.4, [2001:db8::5]:1' }, '2001:db8::5'],
  ['the connection, where it holds no address', 'service', { 'x-real-ip': 'unknown' }, '127.0.0.1'],
  ['the connection, where it is missing', 'service', {}, '127.0.0.1'],
  ['the first entry of Sb-Forwarded-For', 'forwarded', { 'sb-forwarded-for': '10.6.6.6:9, 10.0.0.1' }, '10.6.6.6'],
  ['the connection, where that is missing', 'forwarded', {}, '127.0.0.1'],
])('a session shows its owner and admins %s, whatever X-Forwarded-For claims', async ([, which, headers, ip]) => {
  const at = which === 'service' ? service : forwarded
  const user = await signIn(at, { ...headers, ...CLAIM })
  expect((await at.get('/user/sessions', user.auth)).body).toMatchObject([{ ip }])
  expect((await at.get(`/admin/users/${user.userId}/sessions`, at.admin)).body).toMatchObject([{ ip }])
})

test('a challenge is answered from the client address that requested it, and X-Forwarded-For cannot imitate one', async () => {
  const from = (ip: string) => ({ 'x-real-ip': ip, ...CLAIM })
  const user = await signIn(service, from('10.5.5.5'))
  const totp = await enrollTotp(service, user)
  const { body: opened } = await service.post(
    `/factors/${totp.id}/challenge`,
    {},
    { ...user.auth, ...from('10.5.5.5:1') },
  )
  const verify = (ip: string) => {
    const body = { challenge_id: opened.id, code: totpCode(totp.secret, service.clock.now()) }
    return service.post(`/factors/${totp.id}/verify`, body, { ...user.auth, ...from(ip) })
  }
  expect(await verify('10.9.9.9')).toMatchObject({ status: 422, body: { error_code: 'mfa_ip_address_mismatch' } })
  expect((await verify('10.5.5.5:2')).status).toBe(200)
})

test('a header that holds no address is logged once, and not what it holds', async () => {
  for (let n = 0; n < 5; n++)
    await service.post('/verify', { type: 'signup', token_hash: 'x' }, { 'x-real-ip': `h-${n}` })
  const message = 'trusted address header holds no address'
  const log = async () => (await readFile(join(folder, 'log'), 'utf8').catch(() => '')).split('\n')
  await expect.poll(async () => (await log()).filter((line) => line.includes(message)).length).toBe(1)
  expect((await log()).some((line) => line.includes('h-0') || line.includes('unknown'))).toBe(false)
})
