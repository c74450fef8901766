import { expect, test } from 'vitest'
import { startTestService } from '../../../test/service.ts'
import { startUpstream } from '../../../test/upstream.ts'

test('a template from a URL that hangs holds a mail up for ten seconds, and no start', async () => {
  const upstream = await startUpstream((response) => void response.writeHead(200).write('<p>'))
  const service = await startTestService({ AUTH_MAILER_TEMPLATES_CONFIRMATION: `${upstream.url}/a.html` })
  await service.post('/signup', { email: 'waits@example.com', password: 'correct horse' })
  const { html } = await service.mailbox.waitFor('waits@example.com')
  expect(html).toContain('Confirm your email address')
  await service.close()
  await upstream.close()
})
