import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type ProviderSignIns, startProviderSignIns } from '../../../test/provider-sign-in.ts'
import { json, text } from '../../../test/upstream.ts'
import { PROVIDER_EXAMPLES } from '../../../test/upstreams/provider-examples.ts'
import { ACCESS_TOKEN, clientOf, codeOf, type Instead, sign } from '../../../test/upstreams/sign-in-providers.ts'

let all: ProviderSignIns
let folder: string
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'provider-logs-'))
  all = await startProviderSignIns({ AUTH_LOG_LEVEL: 'debug', AUTH_LOG_FILE: join(folder, 'log') })
})
afterAll(() => rm(folder, { recursive: true }))

const SECRET_ADDRESS = 'secret-address'
const ANSWERS: Instead[] = [
  (response, usual) => void response.writeHead(200).end(`${usual.slice(0, -1)} ${ACCESS_TOKEN}`),
  (response, usual) => void response.writeHead(400).end(usual),
  (response, usual) =>
    void response.writeHead(401, { 'www-authenticate': `Bearer error="${ACCESS_TOKEN}"` }).end(usual),
  text(`${SECRET_ADDRESS}@example.com`),
  text(ACCESS_TOKEN),
  json({ access_token: { ACCESS_TOKEN }, email: SECRET_ADDRESS }),
]

test('the log says what failed at a provider and holds no token, code, secret or address', async () => {
  const begun = await all.service.get('/authorize?provider=github')
  const cookie = /=([^;]+);/.exec(String(begun.headers['set-cookie']))?.[1] as string
  // Among them one that is refused for its cookie.
  const { state } = all.far.visit('github', new URL(String(begun.headers.location)), all.newAccount('github'))
  await all.service.otherBrowser().get(`/callback?code=${codeOf('github')}&state=${state}`)
  const names = Object.keys(PROVIDER_EXAMPLES)
  const visit = (name: string) => all.signIn(name, { ...all.newAccount(name), email: `${SECRET_ADDRESS}@example.com` })
  for (const name of names) {
    for (const step of ['token', 'profile'] as const) {
      for (const answer of ANSWERS) {
        all.far.answer(name, step, answer)
        await visit(name)
      }
      all.far.answer(name, step)
    }
  }
  const idTokens: string[] = []
  for (const wrong of [{ aud: 'another' }, { iss: 'https://a.example' }, { exp: 1 }, { nonce: 'x' }, { nbf: 9e9 }]) {
    all.far.forge(async (claims, keys) => {
      idTokens.push(await sign({ ...claims, ...wrong }, keys))
      return idTokens.at(-1) as string
    })
    for (const name of ['apple', 'azure', 'google']) await visit(name)
  }
  await all.close()
  // Lines are written together, a tenth of a second late.
  await new Promise((written) => all.service.deps.log.flush(written))
  const log = await readFile(join(folder, 'log'), 'utf8')
  expect(log.match(/request refused/g)?.length).toBeGreaterThan(100)
  const secrets = [
    ...[ACCESS_TOKEN.slice(0, 8), SECRET_ADDRESS.slice(0, 8), cookie],
    ...names.flatMap((name) => [codeOf(name), clientOf(name).secret]),
    ...idTokens,
  ]
  expect(secrets.filter((secret) => log.includes(secret))).toEqual([])
})
