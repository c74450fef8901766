// A mail server whose certificate an authority of one's own has issued.
import { execFileSync } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, readFile, writeFile } from 'node:fs/promises'
import { type AddressInfo, createServer, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { TLSSocket } from 'node:tls'
import { beforeAll, describe, expect, test } from 'vitest'
import { authHere } from '../../../test/command-line.ts'

let authority: string
let port: number

beforeAll(async () => {
  const folder = await mkdtemp(join(tmpdir(), 'authority-'))
  const at = (name: string) => join(folder, name)
  const openssl = (...args: string[]) => execFileSync('openssl', args, { cwd: folder, stdio: 'pipe' })
  const key = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes']
  openssl('req', '-x509', ...key, '-keyout', 'ca.key', '-out', 'ca.crt', '-subj', '/CN=Our authority')
  openssl('req', ...key, '-keyout', 'mail.key', '-out', 'mail.csr', '-subj', '/CN=localhost')
  await writeFile(at('names'), 'subjectAltName=DNS:localhost')
  const issue = ['-req', '-in', 'mail.csr', '-CA', 'ca.crt', '-CAkey', 'ca.key', '-CAcreateserial', '-extfile', 'names']
  openssl('x509', ...issue, '-out', 'mail.crt')
  authority = at('ca.crt')
  const server = createServer(
    serveStartTls({ key: await readFile(at('mail.key')), cert: await readFile(at('mail.crt')) }),
  )
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  port = (server.address() as AddressInfo).port
  return () => server.close()
})

/** Speaks as much SMTP as one mail takes, after STARTTLS alone. */
const serveStartTls = (pair: { key: Buffer; cert: Buffer }) => (plain: Socket) => {
  const serve = (socket: Socket, isSafe: boolean) => {
    let last = ''
    socket.on('error', () => {})
    socket.on('data', (chunk) => {
      const line = chunk.toString('latin1')
      last = (last + line).slice(-5)
      const say = (text: string) => socket.write(`${text}\r\n`)
      if (/^EHLO/.test(line)) say(isSafe ? '250 hi' : '250-hi\r\n250 STARTTLS')
      else if (/^STARTTLS/.test(line)) {
        socket.removeAllListeners('data')
        socket.write('220 go\r\n', () => serve(new TLSSocket(socket, { isServer: true, ...pair }), true))
      } else if (!isSafe) say('530 TLS first')
      else if (/^DATA/.test(line)) say('354 go')
      else if (/^(MAIL|RCPT|QUIT)/.test(line) || last === '\r\n.\r\n') say('250 ok')
    })
  }
  plain.write('220 test\r\n')
  serve(plain, false)
}

describe('mail test, with TLS required', { tags: 'openssl' }, () => {
  const run = (settings: Record<string, string>) =>
    authHere(['mail', 'test', 'ada@example.com'], {
      ...{ AUTH_SMTP_HOST: 'localhost', AUTH_SMTP_PORT: String(port), AUTH_SMTP_TLS: 'required' },
      ...settings,
    })

  test('refuses the certificate, and names the setting', async () => {
    expect(await run({})).toMatchObject({
      code: 1,
      stderr: expect.stringMatching(/TLS failed[\s\S]*AUTH_SMTP_CA_FILE/),
    })
  })

  test('accepts it with the file of the authority', async () => {
    expect(await run({ AUTH_SMTP_CA_FILE: authority })).toMatchObject({ code: 0, stderr: '' })
  })
})
