// A relying party that others wrote: Apache with mod_auth_openidc, in front of an application.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { get, type IncomingMessage } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { findFreePort } from '@services/common/dev/dev-ports'
import { startReceiver } from '@services/common/testing/http/receiver'
import { APACHE_MODULES, findProgram } from '@services/common/testing/run/needs'
import { expect, onTestFinished, test } from 'vitest'
import { sendNotices } from '../../src/core/oauth-server/logout/send-notices.ts'
import { type Application, answer, application, startOAuthServer } from './application.ts'

const MODULES = ['mpm_event', 'authn_core', 'authz_core', 'authz_user', 'proxy', 'proxy_http', 'auth_openidc']

interface Site {
  origin: string
  issuer: string
  client: Application
  behind: string
}

/** Apache's configuration. Root's processes may not serve, so a `User` is named; without root it is ignored. */
const configuration = (folder: string, { origin, issuer, client, behind }: Site) => `
  ServerRoot ${folder}
  ServerName 127.0.0.1
  Listen ${new URL(origin).host}
  PidFile ${folder}/pid
  ErrorLog ${folder}/error.log
  ${MODULES.map((name) => `LoadModule ${name}_module ${APACHE_MODULES}/mod_${name}.so`).join('\n  ')}
  User www-data
  Group www-data
  OIDCProviderMetadataURL ${issuer}/.well-known/openid-configuration
  OIDCClientID ${client.id}
  OIDCClientSecret ${client.secret}
  OIDCRedirectURI ${origin}/back
  OIDCCryptoPassphrase a-passphrase-of-this-test
  OIDCPKCEMethod S256
  OIDCScope "openid email"
  ProxyPass / ${behind}/
  <Location />
    AuthType openid-connect
    Require valid-user
  </Location>
  <Location /bye>
    AuthType None
    Require all granted
  </Location>
`

/** Starts Apache, which ends with the test. */
async function startApache(site: Site) {
  const folder = await mkdtemp(join(tmpdir(), 'apache-'))
  await writeFile(join(folder, 'apache.conf'), configuration(folder, site))
  const apache = spawn(String(findProgram('apache2')), ['-X', '-f', join(folder, 'apache.conf')], { stdio: 'inherit' })
  const exited = once(apache, 'exit')
  onTestFinished(async () => {
    apache.kill('SIGTERM')
    await exited
    await rm(folder, { recursive: true })
  })
  await expect.poll(() => fetch(`${site.origin}/bye`).catch(() => undefined)).toMatchObject({ status: 204 })
}

/**
 * A browser that keeps the site's cookies; the status, and the address that the answer leads to. Apache sends `fetch`
 * nowhere, because that says that it does not navigate.
 */
function openBrowser() {
  const cookies = new Map<string, string>()
  return async (address: string | URL) => {
    const headers = { cookie: [...cookies].map((pair) => pair.join('=')).join('; '), accept: 'text/html' }
    const [reply]: IncomingMessage[] = await once(get(address, { headers }), 'response')
    for (const each of reply?.headers['set-cookie'] ?? []) {
      const [, name = '', value = ''] = /^([^=]+)=([^;]*)/.exec(each) ?? []
      cookies.set(name, value)
    }
    reply?.resume()
    return [reply?.statusCode, reply?.headers.location ?? ''] as const
  }
}

test('Apache signs users in, and its sessions end by its own sign-out and when the user withdraws their consent', {
  tags: 'apache',
}, async () => {
  const [port, ownPort] = [await findFreePort(), await findFreePort()]
  const [issuer, origin] = [`http://127.0.0.1:${port}`, `http://127.0.0.1:${ownPort}`]
  const behind = await startReceiver()
  onTestFinished(() => behind.close())
  const service = await startOAuthServer(
    { AUTH_API_EXTERNAL_URL: issuer, AUTH_EGRESS_ALLOW_CIDRS: '127.0.0.0/8', AUTH_WORKERS_ENABLED: 'false' },
    () => new Date(),
  )
  onTestFinished(() => service.close())
  await service.app.listen({ port, host: '127.0.0.1' })
  const user = await service.signedIn('ada@example.com')
  const client = await application(service, {
    redirect_uris: [`${origin}/back`],
    post_logout_redirect_uris: [`${origin}/bye`],
    backchannel_logout_uri: `${origin}/back?logout=backchannel`,
  })
  await startApache({ origin, issuer, client, behind: behind.url })
  const toSignIn = [302, expect.stringContaining(`${issuer}/oauth/authorize?`)]

  /** Signs the user in at the site with a new browser. */
  async function signIn() {
    const open = openBrowser()
    const [status, location] = await open(`${origin}/page`)
    expect([status, location]).toEqual(toSignIn)
    expect(await open(await answer(service, user, location))).toEqual([302, `${origin}/page`])
    expect(await open(`${origin}/page`)).toEqual([204, ''])
    const claims = { oidc_claim_email: 'ada@example.com', oidc_claim_sub: user.userId }
    expect(behind.received.at(-1)).toMatchObject({ path: '/page', headers: claims })
    return open
  }

  const leaving = await signIn()
  const [, logout] = await leaving(`${origin}/back?logout=${encodeURIComponent(`${origin}/bye`)}`)
  expect(logout).toContain(`${issuer}/oauth/logout?id_token_hint=`)
  expect((await fetch(logout)).url).toBe(`${origin}/bye`)
  expect(await leaving(`${origin}/page`)).toEqual(toSignIn)

  const staying = await signIn()
  await service.delete(`/user/oauth/grants?client_id=${client.id}`, user.auth)
  await sendNotices(service.deps)
  expect(await staying(`${origin}/page`)).toEqual(toSignIn)
})
