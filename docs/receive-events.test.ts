import { symlink } from 'node:fs/promises'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { expect, inject, onTestFinished, test } from 'vitest'
import { openGuide } from './testing/guide.ts'
import { adminBy } from './testing/jwt.ts'
import { openShell } from './testing/shell.ts'

const { settings } = inject('devServices')
const dependencies = join(import.meta.dirname, '../services/auth/node_modules')

test('the receiver of the guide gets events by settings and by the API, a test and a replay', async () => {
  const guide = openGuide('receive-events.md')
  // Tables of its own: the workers of the other service on this database may not reach the receiver.
  const own = { AUTH_DB_NAMESPACE: 'events', AUTH_MIGRATE_ON_START: 'true', AUTH_WORKERS_ENABLED: 'true' }
  const shell = await openShell({ ...settings, ...own })
  onTestFinished(() => shell.close())
  const secret = (await shell.run(guide.take('openssl'))).stdout.trim()

  await shell.write('receiver.mjs', guide.file('receiver.mjs'))
  await symlink(dependencies, join(shell.folder, 'node_modules'))
  const port = await freePort()
  const receiver = shell.start(`PORT=${port} WEBHOOK_SECRET=${secret} exec node receiver.mjs`)
  await receiver.says(/(receiver is listening)/)
  const here = { 'https://app.example.com/events': `http://127.0.0.1:${port}/` }
  await shell.write('events.env', guide.file('events.env', { ...here, whsec_REPLACE: secret }))
  await shell.write('private.env', guide.file('private.env', { '10.0.0.0/8': '127.0.0.0/8' }))
  const start = 'set -a; . ./events.env; . ./private.env; exec npx -y pnpm@12 -C services/auth start'
  const url = await shell.start(start).says(/listening at (http:[^"]+)"/)

  const admin = adminBy(settings.AUTH_JWT_SECRET)
  const created = await fetch(`${url}/admin/users`, {
    method: 'POST',
    headers: { ...admin, 'content-type': 'application/json' },
    body: JSON.stringify({ email: `events-${port}@example.com` }),
  })
  const { id } = (await created.json()) as { id: string }
  await receiver.says(new RegExp(`user\\.created (${id})`))

  const there = { 'https://auth.example.com': url }
  const token = `export ADMIN_TOKEN=${admin.authorization.slice(7)}\n`
  const added = await shell.run(token + guide.take('"billing"', { ...there, ...here }))
  const webhook = JSON.parse(added.stdout)
  expect(webhook.secret).toMatch(/^whsec_/)
  const tested = await shell.run(`export WEBHOOK=${webhook.id}\n${guide.take('/test', there)}`)
  expect(JSON.parse(tested.stdout)).toMatchObject({ event: 'webhook.test', state: 'waiting' })
  // Its secret is another one, so the receiver refuses it.
  const log = guide.take('/deliveries', there)
  const result = async () => JSON.parse((await shell.run(log)).stdout).deliveries[0].status
  await expect.poll(result).toBe(401)

  const replayed = await shell.run(guide.take('webhooks replay'))
  expect(replayed.stdout).toMatch(/[1-9]\d* events are sent again/)
  expect(guide.untaken()).toEqual([])
})

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1')
  await new Promise((resolve) => server.once('listening', resolve))
  const { port } = server.address() as { port: number }
  await new Promise((resolve) => server.close(resolve))
  return port
}
