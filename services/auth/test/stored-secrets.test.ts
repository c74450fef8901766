import { expect } from 'vitest'
import { linkPath, test } from './service.ts'

const password = 'correct horse'

test('the outbox holds no link and no code in the clear', async ({ service }) => {
  await service.mailbox.refuse()
  await service.post('/signup', { email: 'sealed@example.com', password })
  const { rows } = await service.deps.pool.query(`
    select data::text from auth_queue.job where name = 'mail' union all
    select messages::text || encode(decode(split_part(sealed, '.', 3), 'base64'), 'escape') from messages where sealed is not null`)
  expect(rows.length).toBeGreaterThan(1)
  for (const { data } of rows) {
    expect(data).not.toContain('sealed@example.com')
    expect(data).not.toContain('/verify')
  }
  await service.mailbox.accept()
  await service.mailbox.waitFor('sealed@example.com')
})

test('one-time tokens are stored only as hashes', async ({ service }) => {
  await service.post('/signup', { email: 'hashed@example.com', password })
  const { text } = await service.mailbox.waitFor('hashed@example.com')
  const token = new URLSearchParams(linkPath(text).split('?')[1]).get('token') as string
  const rows = await service.deps.db.selectFrom('one_time_tokens').selectAll().execute()
  expect(JSON.stringify(rows)).not.toContain(token)
  expect(rows.some((row) => row.token_hash?.toString('base64url') === token)).toBe(false)
})
